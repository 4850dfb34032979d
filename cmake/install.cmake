# What others may link: libspillway.so with models, planner, simulator and traces (not the executor,
# which is a program of its own), its headers under include/spillway/FOLDER/, and spillway.pc.
#
#     cc main.c $(pkg-config --cflags --libs spillway)        #include "planner/plan.h"
#
# A policy of one's own needs one header, <spillway/policy.h>; it stands in the build tree as well.

configure_file(${CMAKE_SOURCE_DIR}/planner/policy.h ${CMAKE_BINARY_DIR}/include/spillway/policy.h
               COPYONLY)

set(LIBRARY_OBJECTS "")
foreach(module spw_base spw_models spw_plan spw_planner spw_traces spw_sim)
    if(TARGET ${module})
        list(APPEND LIBRARY_OBJECTS $<TARGET_OBJECTS:${module}>)
    endif()
endforeach()

if(LIBRARY_OBJECTS)
    add_library(spillway SHARED ${LIBRARY_OBJECTS})
    set_target_properties(spillway PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0
                          LINKER_LANGUAGE C)
    target_link_libraries(spillway PRIVATE PkgConfig::JANSSON ZLIB::ZLIB ${GLPK_LIBRARY} m)
    install(TARGETS spillway LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)

    foreach(folder base models planner traces sim)
        file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.h)
        install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/spillway/${folder}
                COMPONENT library)
    endforeach()

    install(FILES ${CMAKE_SOURCE_DIR}/planner/policy.h
            DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/spillway COMPONENT library)

    # Paths relative to the .pc file: the installed tree may be moved.
    file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
    file(WRITE ${CMAKE_BINARY_DIR}/spillway.pc
"prefix=\${pcfiledir}/${pc_to_prefix}
libdir=\${prefix}/${CMAKE_INSTALL_LIBDIR}
includedir=\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}

Name: spillway
Description: ${PROJECT_DESCRIPTION}
Version: ${PROJECT_VERSION}
Requires: jansson
Requires.private: zlib
Libs: -L\${libdir} -lspillway
Libs.private: -lglpk -lm
Cflags: -I\${includedir}/spillway
")
    install(FILES ${CMAKE_BINARY_DIR}/spillway.pc
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
endif()

# Figures of papers, and the profiles that some of them name: with the same paths between them as in the tree.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/plots/papers DESTINATION ${CMAKE_INSTALL_DATADIR}/spillway/plots)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/instances/pipedream DESTINATION ${CMAKE_INSTALL_DATADIR}/spillway/instances)
