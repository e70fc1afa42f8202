# Compiler cache, linker, warnings and sanitizers.

find_program(STRETTO_CCACHE ccache)
if(STRETTO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(stretto_launcher ${CMAKE_CURRENT_LIST_DIR}/cached_compiler.sh ${CMAKE_SOURCE_DIR} ${STRETTO_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${stretto_launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${stretto_launcher})
endif()

# stretto_pch_sum(TARGET FILE…): what TARGET's precompiled header is made of, for the compiler cache. The header itself names the
# folder of the checkout, so that every file would be a miss in another one. FILE is what changes with its libraries. CMake names
# a header by the language that was enabled last: beside a gcc for C, that of clang++ ends in .gch.
function(stretto_pch_sum target)
  set(made_of "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${CMAKE_CXX_FLAGS}")
  foreach(file ${ARGN})
    file(SHA256 ${file} hash)
    string(APPEND made_of " ${hash}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/cmake_pch.hxx${CMAKE_PCH_EXTENSION}.sum "${made_of}\n")
endfunction()

find_program(STRETTO_MOLD mold)
if(STRETTO_MOLD AND NOT STRETTO_SANITIZE AND NOT STRETTO_CUDA)
  add_link_options(-fuse-ld=mold)
endif()

add_library(stretto_warnings INTERFACE)
target_compile_options(stretto_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-missing-field-initializers -Wno-unused-parameter>)
if(STRETTO_WERROR)
  target_compile_options(stretto_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 gives false warnings about std::string and std::optional when it optimises (GCC bugs 105329, 105651, 80635).
  target_compile_options(stretto_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict -Wno-array-bounds -Wno-maybe-uninitialized
    -Wno-stringop-overflow -Wno-stringop-overread>)
  # -fpch-preprocess lets ccache see through the precompiled header.
  target_compile_options(stretto_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # Otherwise a precompiled header holds the times of its files, and whatever was compiled with it is a cache miss.
  target_compile_options(stretto_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>)
endif()

if(STRETTO_SANITIZE)
  # Reports of the sanitizers need only the lines of the debug information.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
                      -O1 $<IF:$<CXX_COMPILER_ID:Clang>,-gline-tables-only,-g1>)
  add_link_options(-fsanitize=address,undefined)
  # The rooms tell the fuzzers which branches an input took; without that they would only guess.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
endif()
