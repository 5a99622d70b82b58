include(CMakePackageConfigHelpers)
set(cmakedir ${CMAKE_INSTALL_LIBDIR}/cmake/nki)
install(TARGETS nki EXPORT nkiTargets
  LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev
  ARCHIVE COMPONENT dev RUNTIME COMPONENT runtime)
install(TARGETS nki_cli RUNTIME COMPONENT runtime)
install(DIRECTORY include/ ${PROJECT_BINARY_DIR}/include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h")
install(EXPORT nkiTargets NAMESPACE nki:: DESTINATION ${cmakedir} COMPONENT dev)
configure_package_config_file(cmake/nkiConfig.cmake.in nkiConfig.cmake
  INSTALL_DESTINATION ${cmakedir})
write_basic_package_version_file(nkiConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/nkiConfig.cmake ${PROJECT_BINARY_DIR}/nkiConfigVersion.cmake
  DESTINATION ${cmakedir} COMPONENT dev)
# The depth of ${pcfiledir} below the prefix follows the library folder (lib, lib64, lib/TRIPLET).
string(REGEX REPLACE "[^/]+" ".." up ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_file(cmake/nki.pc.in nki.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/nki.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
# The manual page and the completions say what the tool itself says.
set(pages ${PROJECT_BINARY_DIR}/pages)
file(MAKE_DIRECTORY ${pages})
add_custom_command(OUTPUT ${pages}/nki.1 ${pages}/nki ${pages}/_nki
  COMMAND nki_cli help --man >${pages}/nki.1
  COMMAND nki_cli completion bash >${pages}/nki
  COMMAND nki_cli completion zsh >${pages}/_nki
  DEPENDS nki_cli)
add_custom_target(nki_pages ALL DEPENDS ${pages}/nki.1 ${pages}/nki ${pages}/_nki)
install(FILES ${pages}/nki.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime)
install(FILES ${pages}/nki DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
install(FILES ${pages}/_nki DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT runtime)
