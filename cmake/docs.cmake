# Man pages from docs/NAME.SECTION.scd with scdoc, and the completion script from the program itself.
# Without scdoc the pages are left out and everything else builds.
find_program(SCDOC scdoc)
file(GLOB MAN_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.scd)
if(SCDOC)
    set(MAN_PAGES "")
    foreach(source ${MAN_SOURCES})
        get_filename_component(page ${source} NAME_WLE)
        string(REGEX REPLACE ".*\\." "" section ${page})
        set(target ${CMAKE_BINARY_DIR}/man/${page})
        add_custom_command(OUTPUT ${target}
                           COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man
                           COMMAND ${SCDOC} < ${source} > ${target}
                           DEPENDS ${source} VERBATIM)
        list(APPEND MAN_PAGES ${target})
        install(FILES ${target} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
    endforeach()
    add_custom_target(man ALL DEPENDS ${MAN_PAGES})
else()
    message(STATUS "scdoc was not found: no man pages")
endif()

if(TARGET spillway-cli)
    set(COMPLETION ${CMAKE_BINARY_DIR}/completion/spillway)
    add_custom_command(OUTPUT ${COMPLETION}
                       COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/completion
                       COMMAND spillway-cli completion bash > ${COMPLETION}
                       DEPENDS spillway-cli VERBATIM)
    add_custom_target(completion ALL DEPENDS ${COMPLETION})
    install(FILES ${COMPLETION} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endif()

# A dated example of a price list for `spillway whatif`; nothing reads it unless it is named.
install(FILES ${CMAKE_SOURCE_DIR}/docs/prices-2026-11.csv DESTINATION ${CMAKE_INSTALL_DATADIR}/spillway)
