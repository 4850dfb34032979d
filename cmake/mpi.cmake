# The one file that is linked with MPI, a module that `sweep` loads when mpirun started it. Where MPI is not there, it is
# left out, and a sweep that mpirun starts says so.
option(SPILLWAY_MPI "build the module for sweeps under mpirun when MPI is found" ON)
if(SPILLWAY_MPI)
    find_package(MPI COMPONENTS C)
endif()
if(MPI_C_FOUND)
    add_library(spillway-mpi MODULE sweep/mpi/ranks_mpi.c)
    target_link_libraries(spillway-mpi PRIVATE MPI::MPI_C)
    set_target_properties(spillway-mpi PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
    install(TARGETS spillway-mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/spillway)
    target_compile_definitions(spw_sweep PRIVATE
                               SPILLWAY_MODULE_FOLDER="${CMAKE_INSTALL_FULL_LIBDIR}/spillway")
endif()
