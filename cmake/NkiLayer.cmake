function(nki_warnings target)
  set_target_properties(${target} PROPERTIES
    C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wconversion -Wcast-qual -Wwrite-strings -Wformat=2 -Wundef -Wvla
    $<$<BOOL:${NKI_DEVELOPER_MODE}>:-Werror>)
endfunction()

# nki_layer(NAME SOURCES ... [RE2C f.re] [BISON f.y] [OPTIONS flag...] [LIBS lib...] [DEPENDS layer...])
#   OPTIONS  compile options of this layer only
#   DEPENDS  every layer that it may include or call, not only the nearest; last, on one line with
#            the call's end, since tools/check-layers.sh reads it
function(nki_layer name)
  cmake_parse_arguments(L "" "RE2C;BISON" "SOURCES;OPTIONS;LIBS;DEPENDS" ${ARGN})
  list(TRANSFORM L_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/${name}/)
  add_library(nki_${name} OBJECT ${L_SOURCES})
  target_include_directories(nki_${name} PUBLIC
    ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
  set_target_properties(nki_${name} PROPERTIES
    POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
  target_compile_definitions(nki_${name} PRIVATE nki_EXPORTS
    $<$<NOT:$<BOOL:${BUILD_SHARED_LIBS}>>:NKI_STATIC_DEFINE>)
  # Which operations are fused is part of the numerics, so it is written, never chosen.
  target_compile_options(nki_${name} PRIVATE -ffp-contract=off ${L_OPTIONS})
  foreach(dep IN LISTS L_DEPENDS)
    target_link_libraries(nki_${name} PUBLIC nki_${dep})
  endforeach()
  target_link_libraries(nki_${name} PUBLIC ${L_LIBS})
  if(L_RE2C)
    nki_re2c(nki_${name} ${name}/${L_RE2C})
  endif()
  if(L_BISON)
    nki_bison(nki_${name} ${name}/${L_BISON})
  endif()
  nki_warnings(nki_${name})
  set_property(GLOBAL APPEND PROPERTY NKI_LAYERS ${name})
  set_property(GLOBAL PROPERTY NKI_LAYER_DEPENDS_${name} "${L_DEPENDS}")
  set_property(GLOBAL PROPERTY NKI_LAYER_LIBS_${name} "${L_LIBS}")
endfunction()
