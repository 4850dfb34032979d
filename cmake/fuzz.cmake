# tests/fuzz_NAME.c defines LLVMFuzzerTestOneInput. In an ordinary build it is linked with a driver that replays the files
# of tests/corpus/NAME and their random mutations, so that every run of the tests feeds each reader a few thousand broken
# inputs. With SPILLWAY_FUZZ (clang) it is linked with libFuzzer, the libraries are instrumented as well, and coverage
# guides it: 20 000 inputs in the set "fuzz", five minutes in the set "slow". New inputs and findings then stay in the
# build folder; `./bootstrap fuzz` explains how they reach the corpus.
file(GLOB FUZZ_SOURCES CONFIGURE_DEPENDS tests/fuzz_*.c)
add_custom_target(fuzz_targets)
foreach(source ${FUZZ_SOURCES})
    get_filename_component(name ${source} NAME_WE)
    string(REPLACE "fuzz_" "" short ${name})
    set(corpus ${CMAKE_SOURCE_DIR}/tests/corpus/${short})
    if(SPILLWAY_FUZZ)
        add_executable(${name} ${source})
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        set(run bash ${CMAKE_SOURCE_DIR}/tests/fuzz_guided.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR} ${short})
        spillway_test(${name} fuzz ${source} COMMAND ${run} -runs=20000 -max_total_time=120)
        spillway_test(${name}_long slow ${source} COMMAND ${run} -max_total_time=300)
    else()
        add_executable(${name} ${source} tests/replay_main.c)
        spillway_test(${name} fuzz ${source} COMMAND $<TARGET_FILE:${name}> ${corpus})
    endif()
    target_link_libraries(${name} PRIVATE ${TEST_MODULES})
    add_dependencies(fuzz_targets ${name})
endforeach()
