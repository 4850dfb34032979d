# Man pages from docs/NAME.SECTION.scd with scdoc, and the completion scripts from the program itself.
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
    # A shell finds its script by the name that its folder wants.
    set(COMPLETION_bash spillway)
    set(COMPLETION_zsh _spillway)
    set(COMPLETION_fish spillway.fish)
    set(COMPLETIONS "")
    foreach(shell bash zsh fish)
        set(target ${CMAKE_BINARY_DIR}/completion/${COMPLETION_${shell}})
        add_custom_command(OUTPUT ${target}
                           COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/completion
                           COMMAND spillway-cli completion ${shell} > ${target}
                           DEPENDS spillway-cli VERBATIM)
        list(APPEND COMPLETIONS ${target})
    endforeach()
    add_custom_target(completion ALL DEPENDS ${COMPLETIONS})
    install(FILES ${CMAKE_BINARY_DIR}/completion/spillway DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${CMAKE_BINARY_DIR}/completion/_spillway DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${CMAKE_BINARY_DIR}/completion/spillway.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

# A dated example of a price list for `spillway whatif`; nothing reads it unless it is named.
install(FILES ${CMAKE_SOURCE_DIR}/docs/prices-2026-11.csv DESTINATION ${CMAKE_INSTALL_DATADIR}/spillway)
