# Writes OUTPUT, a header with a hash of all headers below SOURCES: their names and their bytes. It is
# left alone when nothing has changed, so that nothing is compiled for it.
cmake_minimum_required(VERSION 3.22)
file(GLOB_RECURSE headers RELATIVE ${SOURCES} ${SOURCES}/*.h)
list(SORT headers)
set(all "")
foreach(header ${headers})
  file(SHA256 ${SOURCES}/${header} hash)
  string(APPEND all "${header} ${hash}\n")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 16 id)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once

#include <cstdint>

namespace stretto {

inline constexpr uint64_t kBuildId = 0x@id@ULL;

}  // namespace stretto
" @ONLY)
