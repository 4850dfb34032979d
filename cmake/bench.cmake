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
