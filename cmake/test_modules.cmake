# What tests and fuzz targets are linked with, and how one is registered.
set(TEST_MODULES "")
foreach(module spw_cli spw_repro spw_report spw_sweep spw_noise spw_history spw_exec spw_swarm spw_explain spw_sim
        spw_serving spw_planner spw_plots spw_traces spw_plan spw_models spw_base)
    if(TARGET ${module})
        list(APPEND TEST_MODULES ${module})
    endif()
endforeach()

# A test is run by tests/bare_path.sh, with a PATH of only what bootstrap installs; what else it takes where it is there
# is told by "also uses: TOOL..." in one of the first lines of SOURCE.
function(spillway_test name label source)
    file(STRINGS ${source} head_lines LIMIT_COUNT 4)
    set(tools "")
    if("${head_lines}" MATCHES "also uses: ([a-z0-9 -]+)")
        string(STRIP "${CMAKE_MATCH_1}" tools)
    endif()
    cmake_parse_arguments(TEST "" "FOLDER" "COMMAND" ${ARGN})
    if(TEST_FOLDER)
        set(TEST_FOLDER WORKING_DIRECTORY ${TEST_FOLDER})
    endif()
    add_test(NAME ${name} COMMAND bash ${CMAKE_SOURCE_DIR}/tests/bare_path.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR} "${tools}"
                                  ${TEST_COMMAND} ${TEST_FOLDER})
    set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 1800)
endfunction()
