# tests/test_NAME.c is one cmocka program, linked with every module there is. Its label is "fast"
# (less than a minute for all of these, on two cores) unless its first line says "label: medium" (several
# seconds), "label: long", "label: slow" or "label: fuzz" in a comment.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

file(GLOB TEST_SOURCES CONFIGURE_DEPENDS tests/test_*.c)
file(GLOB TEST_SUPPORT CONFIGURE_DEPENDS tests/support_*.c)
add_library(spw_test_support STATIC EXCLUDE_FROM_ALL ${TEST_SUPPORT})
target_link_libraries(spw_test_support PUBLIC ${TEST_MODULES} PkgConfig::CMOCKA)

# Policies of a user's that do one thing wrong each: policies/crashes.so and so on.
file(STRINGS tests/policies/broken_policy.c broken REGEX "^enum { GOOD|^       [A-Z_]+,")
string(REGEX MATCHALL "[A-Z_]+" broken "${broken}")
add_custom_target(broken_policies ALL)
foreach(wrong ${broken})
    string(TOLOWER ${wrong} name)
    add_library(policy_${name} MODULE tests/policies/broken_policy.c)
    target_compile_definitions(policy_${name} PRIVATE BREAK=${wrong})
    target_include_directories(policy_${name} BEFORE PRIVATE ${CMAKE_BINARY_DIR}/include)
    set_target_properties(policy_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name}
                          LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/policies)
    add_dependencies(broken_policies policy_${name})
endforeach()

foreach(source ${TEST_SOURCES})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    add_dependencies(${name} broken_policies)
    target_link_libraries(${name} PRIVATE spw_test_support ${TEST_MODULES} PkgConfig::CMOCKA)
    target_compile_definitions(${name} PRIVATE SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                               BINARY_DIR="${CMAKE_BINARY_DIR}")
    file(STRINGS ${source} first_line LIMIT_COUNT 1)
    set(label fast)
    if(first_line MATCHES "label: ([a-z]+)")
        set(label ${CMAKE_MATCH_1})
    endif()
    spillway_test(${name} ${label} ${source} COMMAND $<TARGET_FILE:${name}> FOLDER ${CMAKE_SOURCE_DIR})
    # teams of threads that spin would starve the tests beside them (exec/wait_policy.h)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "OMP_WAIT_POLICY=passive;SPILLWAY_HISTORY=")
endforeach()

# The same judges, a million cases: some ten minutes of a core.
spillway_test(test_sim_families_many slow tests/test_sim_families.c COMMAND $<TARGET_FILE:test_sim_families> 1000000
              FOLDER ${CMAKE_SOURCE_DIR})
set_tests_properties(test_sim_families_many PROPERTIES TIMEOUT 7200)

# A trace of 1.2 GB, more than JSON that is read whole may have: a few minutes of a core, and the room on the disk.
spillway_test(test_traces_long_many slow tests/test_traces_long.c COMMAND $<TARGET_FILE:test_traces_long> 15000000
              FOLDER ${CMAKE_SOURCE_DIR})

# In the place of a driver, for the real cuDNN on a machine without one.
if(SPILLWAY_CUDNN_HEADER AND NOT SPILLWAY_CUDA_MISSING)
    add_library(described_driver MODULE tests/emulator/cudnn/described_driver.c)
    set_target_properties(described_driver PROPERTIES LINK_OPTIONS -Wl,-soname,libcuda.so.1)
    add_dependencies(test_exec_cudnn described_driver)
    target_compile_definitions(test_exec_cudnn PRIVATE
                               DESCRIBED_DRIVER="$<TARGET_FILE:described_driver>")
endif()

# The CUDA back end on a runtime of our own (tests/emulator), its kernels as plain C++: needs neither CUDA
# nor a GPU. Not under sanitizers, which lose track of its stacks.
include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER AND NOT SPILLWAY_SANITIZE)
    enable_language(CXX)
    file(GLOB EMULATOR_SOURCES CONFIGURE_DEPENDS tests/emulator/*.c tests/emulator/*.cpp)
    add_library(spw_emulated OBJECT ${EMULATOR_SOURCES} exec/backend.c exec/detect_cuda.c
                exec/device_cuda.c exec/gpu_attention_cuda.c exec/kernels_cuda.c)
    target_compile_features(spw_emulated PUBLIC cxx_std_17)
    target_compile_options(spw_emulated PRIVATE
        "$<$<COMPILE_LANGUAGE:CXX>:-O2;-Wall;-Wextra;-Wno-unknown-pragmas;-fno-math-errno>")
    # in front of CUDA's own headers
    target_include_directories(spw_emulated BEFORE PUBLIC tests/emulator)
    target_compile_definitions(spw_emulated PUBLIC SPILLWAY_CUDA SPILLWAY_EMULATED)
    target_link_libraries(spw_emulated PUBLIC ${TEST_MODULES})
    set(EMULATED_TESTS "test_exec_cuda_emulated tests/test_exec_cuda.c"
                       "test_exec_cuda_kernels_emulated tests/test_exec_cuda_kernels.c"
                       "test_exec_cuda_contract_emulated tests/test_exec_cuda_contract.c"
                       "test_exec_cuda_faults tests/emulated_faults.c"
                       "test_exec_detect_emulated tests/emulated_detect.c")
    if(SPILLWAY_CUDNN_HEADER)
        # a cuDNN of our own, which is loaded as the real one is
        add_library(emulated_cudnn MODULE tests/emulator/cudnn/emulated_cudnn.c)
        target_include_directories(emulated_cudnn BEFORE PRIVATE tests/emulator)
        target_include_directories(emulated_cudnn SYSTEM PRIVATE ${SPILLWAY_CUDNN_HEADER})
        target_sources(spw_emulated PRIVATE ${EXEC_CUDNN_SOURCES})
        target_include_directories(spw_emulated SYSTEM PUBLIC ${SPILLWAY_CUDNN_HEADER})
        target_compile_definitions(spw_emulated PUBLIC SPILLWAY_CUDNN="${SPILLWAY_CUDNN_FOLDER}")
        list(APPEND EMULATED_TESTS "test_exec_cudnn_emulated tests/emulated_sdpa.c")
    endif()
    foreach(pair ${EMULATED_TESTS})
        separate_arguments(pair)
        list(GET pair 0 name)
        list(GET pair 1 source)
        add_executable(${name} ${source})
        target_link_libraries(${name} PRIVATE spw_emulated spw_test_support ${TEST_MODULES}
                              PkgConfig::CMOCKA)
        spillway_test(${name} device ${source} COMMAND $<TARGET_FILE:${name}>)
        set_tests_properties(${name} PROPERTIES ENVIRONMENT OMP_WAIT_POLICY=passive)
    endforeach()
    if(TARGET test_exec_cudnn_emulated)
        add_dependencies(test_exec_cudnn_emulated emulated_cudnn)
        # the library calls the emulated runtime, which is in the program
        set_target_properties(test_exec_cudnn_emulated PROPERTIES ENABLE_EXPORTS ON)
        target_compile_definitions(test_exec_cudnn_emulated PRIVATE
                                   EMULATED_CUDNN="$<TARGET_FILE:emulated_cudnn>")
    endif()
endif()

# tests/check_NAME.sh looks at the tree or the built programs from outside; arguments: source and
# build folder. Exit code 77 means skipped.
file(GLOB CHECK_SCRIPTS CONFIGURE_DEPENDS tests/check_*.sh)
foreach(script ${CHECK_SCRIPTS})
    get_filename_component(name ${script} NAME_WE)
    file(STRINGS ${script} head_lines LIMIT_COUNT 3)
    set(label fast)
    if("${head_lines}" MATCHES "label: ([a-z]+)")
        set(label ${CMAKE_MATCH_1})
    endif()
    spillway_test(${name} ${label} ${script} COMMAND bash ${script} ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT SPILLWAY_HISTORY=)
endforeach()
