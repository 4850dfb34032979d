# tests/bench_NAME.c is a program that measures and prints; `ninja benchmarks` builds them all. They
# are no tests: timings on a shared machine prove nothing by themselves.
file(GLOB BENCH_SOURCES CONFIGURE_DEPENDS tests/bench_*.c)
add_custom_target(benchmarks)
foreach(source ${BENCH_SOURCES})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
    target_link_libraries(${name} PRIVATE spw_test_support)
    add_dependencies(benchmarks ${name})
endforeach()

# Beside SimGrid, where that is (Debian: libsimgrid-dev); nothing else needs it.
find_library(SIMGRID_LIBRARY simgrid)
find_path(SIMGRID_INCLUDE_DIR simgrid/s4u.hpp)
if(SIMGRID_LIBRARY AND SIMGRID_INCLUDE_DIR AND CMAKE_CXX_COMPILER AND NOT SPILLWAY_SANITIZE)
    enable_language(CXX)
    target_sources(bench_engine PRIVATE tests/bench_engine_simgrid.cpp)
    target_compile_features(bench_engine PRIVATE cxx_std_17)
    target_include_directories(bench_engine PRIVATE ${SIMGRID_INCLUDE_DIR})
    target_compile_definitions(bench_engine PRIVATE SPILLWAY_SIMGRID)
    target_link_libraries(bench_engine PRIVATE ${SIMGRID_LIBRARY})
endif()
