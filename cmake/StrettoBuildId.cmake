# The program, libstretto_core.so and libstretto_engine.so share structures by their layout alone: of
# different sources, one reads what another never wrote. Each therefore holds a hash of all headers in
# src/, which are compared before the engine's first call.
#
# The hash is made while building, into a header that only src/base/build_id.cpp may include: another hash
# compiles that file anew, once for each part, and nothing else.

file(GLOB_RECURSE stretto_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/*.h)
set(stretto_generated ${CMAKE_BINARY_DIR}/generated)
add_custom_command(
  OUTPUT ${stretto_generated}/stretto_build_id.h
  COMMAND ${CMAKE_COMMAND} -D SOURCES=${CMAKE_SOURCE_DIR}/src
          -D OUTPUT=${stretto_generated}/stretto_build_id.h
          -P ${CMAKE_SOURCE_DIR}/cmake/write_build_id.cmake
  DEPENDS ${stretto_headers} ${CMAKE_SOURCE_DIR}/cmake/write_build_id.cmake
  COMMENT "Hash of all headers"
  VERBATIM)
add_custom_target(stretto_build_id DEPENDS ${stretto_generated}/stretto_build_id.h)

# stretto_holds_build_id(TARGET): compiles build_id.cpp into TARGET. Alone it sees the folder of that header,
# whose path would make the compiler cache miss for every other file.
function(stretto_holds_build_id target)
  set(file ${CMAKE_SOURCE_DIR}/src/base/build_id.cpp)
  get_target_property(sources ${target} SOURCES)
  if(NOT file IN_LIST sources)
    target_sources(${target} PRIVATE ${file})
  endif()
  set_source_files_properties(${file} PROPERTIES
    INCLUDE_DIRECTORIES ${stretto_generated}
    SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  add_dependencies(${target} stretto_build_id)
endfunction()
