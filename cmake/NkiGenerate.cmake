find_program(RE2C_EXECUTABLE re2c REQUIRED)
find_package(BISON 3.8 REQUIRED)

# clang-tidy takes the nearest configuration above the file it reads, so this one
# covers what is generated. (SKIP_LINTING needs CMake 3.27.)
file(WRITE ${PROJECT_BINARY_DIR}/.clang-tidy "Checks: '-*,misc-unused-alias-decls'\n")

# Generated code lives in the build tree and is never committed.
function(nki_re2c target input)
  string(REGEX REPLACE "\\.re$" ".c" out "${PROJECT_BINARY_DIR}/${input}")
  get_filename_component(dir ${out} DIRECTORY)
  file(MAKE_DIRECTORY ${dir})
  add_custom_command(OUTPUT ${out}
    COMMAND ${RE2C_EXECUTABLE} -W -Werror --no-generation-date
            -o ${out} ${PROJECT_SOURCE_DIR}/${input}
    DEPENDS ${PROJECT_SOURCE_DIR}/${input} VERBATIM)
  target_sources(${target} PRIVATE ${out})
  set_source_files_properties(${out} PROPERTIES COMPILE_OPTIONS "-Wno-conversion;-Wno-cast-qual")
endfunction()

function(nki_bison target input)
  string(REGEX REPLACE "\\.y$" "" stem "${PROJECT_BINARY_DIR}/${input}")
  get_filename_component(dir ${stem} DIRECTORY)
  file(MAKE_DIRECTORY ${dir})
  add_custom_command(OUTPUT ${stem}.c ${stem}.h
    COMMAND ${BISON_EXECUTABLE} -Wall -Werror -Wcounterexamples --header=${stem}.h
            -o ${stem}.c ${PROJECT_SOURCE_DIR}/${input}
    DEPENDS ${PROJECT_SOURCE_DIR}/${input} VERBATIM)
  target_sources(${target} PRIVATE ${stem}.c ${stem}.h)
  set_source_files_properties(${stem}.c PROPERTIES COMPILE_OPTIONS "-Wno-conversion")
  target_include_directories(${target} PUBLIC ${PROJECT_BINARY_DIR})
endfunction()

# The kernel-language modules under stdlib/modules and the kernels under stdlib/ops, as C files that
# implement stdlib.h.
add_executable(nki_embed ${PROJECT_SOURCE_DIR}/tools/embed.c)
nki_warnings(nki_embed)
function(nki_embed target)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/stdlib)
  nki_embed_folder(${target} modules stdlib "<stdlib>")
  nki_embed_folder(${target} ops stdlib_op "<stdlib>/ops")
endfunction()
function(nki_embed_folder target folder prefix shown)
  set(root ${PROJECT_SOURCE_DIR}/stdlib/${folder})
  file(GLOB_RECURSE modules CONFIGURE_DEPENDS RELATIVE ${root} ${root}/*.nki)
  list(TRANSFORM modules PREPEND ${root}/ OUTPUT_VARIABLE paths)
  set(out ${PROJECT_BINARY_DIR}/stdlib/${folder}.c)
  add_custom_command(OUTPUT ${out} COMMAND nki_embed ${out} ${prefix} ${shown} ${root} ${modules}
    DEPENDS nki_embed ${paths} VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
# Files as `const char NAME[]` and `NAME_len`.
function(nki_embed_text target name)
  set(out ${PROJECT_BINARY_DIR}/${name}.c)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE paths)
  add_custom_command(OUTPUT ${out} COMMAND nki_embed --text ${out} ${name} ${paths}
    DEPENDS nki_embed ${paths} VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
