# The CUDA build: nvcc 13 for our kernels, the GPU half of libtorch for everything else.
# Included by StrettoDependencies.cmake when STRETTO_CUDA is on; wants stretto_torch and ${libtorch}.

set(stretto_nvcc ${CMAKE_CUDA_COMPILER})
if(NOT stretto_nvcc)
  set(stretto_nvcc $ENV{CUDACXX})
endif()
if(NOT stretto_nvcc)
  find_program(stretto_nvcc nvcc NO_CACHE
    PATHS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin)
endif()
if(NOT stretto_nvcc)
  message(FATAL_ERROR "STRETTO_CUDA needs nvcc 13, and there is none: set CUDACXX or STRETTO_CUDA=OFF")
endif()
execute_process(COMMAND ${stretto_nvcc} --version OUTPUT_VARIABLE stretto_nvcc_says ERROR_QUIET)
set(stretto_nvcc_release "unknown")
if(stretto_nvcc_says MATCHES "release ([0-9]+\\.[0-9]+)")
  set(stretto_nvcc_release ${CMAKE_MATCH_1})
endif()
# Device code and libtorch share one CUDA runtime, so nvcc's major version must be libtorch's.
if(NOT stretto_nvcc_release MATCHES "^13\\.")
  message(FATAL_ERROR "STRETTO_CUDA needs nvcc 13; ${stretto_nvcc} is version ${stretto_nvcc_release}")
endif()

foreach(library torch_cuda c10_cuda)
  if(NOT EXISTS ${libtorch}/lib/lib${library}.so)
    message(FATAL_ERROR "STRETTO_CUDA needs a CUDA libtorch, and ${libtorch}/lib has no lib${library}.so")
  endif()
endforeach()

# Machine code for Ampere (A100, and 86 and 89 by compatibility) and Hopper, and PTX for what follows.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "GPU architectures of our kernels")
endif()
set(CMAKE_CUDA_COMPILER ${stretto_nvcc})
set(CMAKE_CUDA_COMPILER_LAUNCHER ${stretto_launcher})
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)  # CMake 3.25 knows no CUDA20
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
find_package(CUDAToolkit 13 REQUIRED)

# c10's CUDA headers include the toolkit's. Nothing of ours may name a symbol of libtorch_cuda.so
# for its operators to be registered, hence no-as-needed.
target_include_directories(stretto_torch SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(stretto_torch INTERFACE
  -Wl,--push-state,--no-as-needed ${libtorch}/lib/libtorch_cuda.so ${libtorch}/lib/libc10_cuda.so
  -Wl,--pop-state CUDA::cudart)
# libtorch_cuda.so needs libraries of NVIDIA wheels that only a machine with a GPU must have;
# --allow-shlib-undefined (set for every build) lets the linker do without them.
target_link_options(stretto_torch INTERFACE -Wl,-rpath,${CUDAToolkit_LIBRARY_DIR})

# stretto_cuda_kernels(NAME FILES…): device code as an object library of the engine.
function(stretto_cuda_kernels name)
  add_library(${name} OBJECT ${ARGN})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  # base/random.h is shared with the CPU: its constexpr functions are called from kernels.
  target_compile_options(${name} PRIVATE --expt-relaxed-constexpr -Xcompiler=-Wall,-Wextra
    $<$<BOOL:${STRETTO_WERROR}>:--Werror=all-warnings>)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_sources(stretto_engine PRIVATE $<TARGET_OBJECTS:${name}>)
endfunction()
