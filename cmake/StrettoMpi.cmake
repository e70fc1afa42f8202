# What carries collectives between processes: libstretto_mpi.so where MPI is found, and
# libstretto_nccl.so in the CUDA build where nccl.h is. The program opens them when a job needs them.

find_package(MPI QUIET COMPONENTS C)
if(MPI_C_FOUND)
  message(STATUS "MPI: version ${MPI_C_VERSION} of the standard, ${MPI_C_COMPILER}")
else()
  message(STATUS "MPI: not found, so that a run is one process; apt-get install libopenmpi-dev openmpi-bin")
endif()

if(STRETTO_CUDA)
  find_path(STRETTO_NCCL_INCLUDE nccl.h
    HINTS ${CUDAToolkit_INCLUDE_DIRS} ${libtorch}/include ${libtorch}/../nvidia/nccl/include)
  find_library(STRETTO_NCCL_LIBRARY NAMES nccl libnccl.so.2
    HINTS ${CUDAToolkit_LIBRARY_DIR} ${libtorch}/lib ${libtorch}/../nvidia/nccl/lib)
  if(STRETTO_NCCL_INCLUDE AND STRETTO_NCCL_LIBRARY)
    message(STATUS "NCCL: ${STRETTO_NCCL_INCLUDE}/nccl.h, ${STRETTO_NCCL_LIBRARY}")
  else()
    message(STATUS "NCCL: nccl.h or its library is missing, so that a run is one process on one GPU")
  endif()
endif()

# stretto_backend(NAME): src/distributed/NAME/*.cpp as a library that is opened at run time.
function(stretto_backend name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/distributed/${name}/*.cpp)
  add_library(stretto_${name} SHARED ${sources})
  target_link_libraries(stretto_${name} PRIVATE stretto_core stretto_warnings)
  set_target_properties(stretto_${name} PROPERTIES BUILD_RPATH "\$ORIGIN" INSTALL_RPATH "\$ORIGIN")
  add_dependencies(stretto stretto_${name})
endfunction()

# What mpirun of a job on one machine is started with (src/launcher/guard). It lives in a program that is not
# ours: no sanitizer, no library of ours, only its two functions to be seen.
function(stretto_mpirun_guard)
  add_library(stretto_mpirun_guard MODULE ${CMAKE_SOURCE_DIR}/src/launcher/guard/mpirun_guard.cpp)
  target_link_libraries(stretto_mpirun_guard PRIVATE stretto_warnings)
  set_target_properties(stretto_mpirun_guard PROPERTIES CXX_VISIBILITY_PRESET hidden)
  target_link_options(stretto_mpirun_guard PRIVATE LINKER:--as-needed)
  if(STRETTO_SANITIZE)
    target_compile_options(stretto_mpirun_guard PRIVATE -fno-sanitize=all)
    target_link_options(stretto_mpirun_guard PRIVATE -fno-sanitize=all)
  endif()
  add_dependencies(stretto stretto_mpirun_guard)
endfunction()

# Called once the rooms are there.
function(stretto_backends)
  if(MPI_C_FOUND)
    stretto_backend(mpi)
    stretto_mpirun_guard()
    # Its C++ bindings, gone from the standard, would warn.
    target_compile_definitions(stretto_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
    target_link_libraries(stretto_mpi PRIVATE MPI::MPI_C)
  endif()
  if(STRETTO_CUDA AND STRETTO_NCCL_INCLUDE AND STRETTO_NCCL_LIBRARY)
    stretto_backend(nccl)
    target_include_directories(stretto_nccl SYSTEM PRIVATE ${STRETTO_NCCL_INCLUDE}
                               ${CUDAToolkit_INCLUDE_DIRS})
    target_link_libraries(stretto_nccl PRIVATE CUDA::cudart ${STRETTO_NCCL_LIBRARY})
  endif()
endfunction()
