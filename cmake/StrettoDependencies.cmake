# Everything Stretto stands on. `./dev setup` installs it; a missing piece says so in one line.

set(STRETTO_DEPS ${CMAKE_SOURCE_DIR}/.deps CACHE PATH "Where ./dev setup puts libtorch and sentencepiece")
set(STRETTO_LIBTORCH "" CACHE PATH "An existing libtorch (folder with include/ and lib/); empty: that of STRETTO_DEPS")
# The variable of the environment is what was said last, so that it wins over an earlier configuration.
if(NOT "$ENV{STRETTO_LIBTORCH}" STREQUAL "")
  set_property(CACHE STRETTO_LIBTORCH PROPERTY VALUE "$ENV{STRETTO_LIBTORCH}")
endif()

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc i18n)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)
pkg_check_modules(SNDFILE REQUIRED IMPORTED_TARGET sndfile)
pkg_check_modules(SOXR REQUIRED soxr)
pkg_check_modules(KISSFFT REQUIRED IMPORTED_TARGET kissfft-float)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp libwebpdemux)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

# Static, with hidden symbols: Debian's shared one and libtorch both export protobuf.
add_library(stretto_sentencepiece INTERFACE)
if(NOT EXISTS ${STRETTO_DEPS}/sentencepiece/lib/libsentencepiece.a)
  message(FATAL_ERROR "sentencepiece is not in ${STRETTO_DEPS}: run ./dev setup")
endif()
target_include_directories(stretto_sentencepiece SYSTEM INTERFACE ${STRETTO_DEPS}/sentencepiece/include)
target_link_libraries(stretto_sentencepiece INTERFACE
  ${STRETTO_DEPS}/sentencepiece/lib/libsentencepiece_train.a
  ${STRETTO_DEPS}/sentencepiece/lib/libsentencepiece.a)
# One option for each: mold 1.10 never ends on a list with a colon.
target_link_options(stretto_sentencepiece INTERFACE
  "LINKER:--exclude-libs,libsentencepiece.a" "LINKER:--exclude-libs,libsentencepiece_train.a")

if(STRETTO_ENGINE)
  set(libtorch ${STRETTO_LIBTORCH})
  if(NOT libtorch)
    set(libtorch ${STRETTO_DEPS}/torch/torch)
  endif()
  if(NOT EXISTS ${libtorch}/lib/libtorch_cpu.so)
    message(FATAL_ERROR "no libtorch in ${libtorch}: run ./dev setup, or set STRETTO_LIBTORCH=/path/to/libtorch")
  endif()
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  add_library(stretto_torch INTERFACE)
  target_include_directories(stretto_torch SYSTEM INTERFACE
    ${libtorch}/include ${libtorch}/include/torch/csrc/api/include)
  # libtorch brings its own libgomp with the same soname; linking the compiler's is harmless.
  target_link_libraries(stretto_torch INTERFACE
    ${libtorch}/lib/libtorch_cpu.so ${libtorch}/lib/libc10.so OpenMP::OpenMP_CXX)
  # The CUDA wheel's libtorch_cpu.so itself needs libcudart and libcupti.
  target_link_options(stretto_torch INTERFACE -Wl,--allow-shlib-undefined
    -Wl,-rpath,${libtorch}/lib)
  if(STRETTO_CUDA)
    include(StrettoCuda)
  endif()
endif()

include(StrettoMpi)
