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
if(EXISTS ${PROJECT_SOURCE_DIR}/docs/nki.1)
  install(FILES docs/nki.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime)
endif()
