# A room is a folder of src/ and an object library. stretto_core holds the rooms without libtorch,
# stretto_engine those with it; the command line links the first and opens the second when needed.

# Files of these rooms are compiled a few at a time: libtorch's headers are what a file costs, and
# nothing of one file disturbs the next. A name in an unnamed namespace is therefore unique in its room.
set(stretto_unity_rooms base text metrics store interchange search config report distributed launcher data experiment families lint plan
    seeds sweep distill audio image kernels nn optim
    decoding losses compress models parallel runs train tasks families_engine engine)
function(stretto_join_files name)
  if(STRETTO_UNITY AND name IN_LIST stretto_unity_rooms)
    set_target_properties(room_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # The joint file is a header to the compiler, which then minds members of unnamed types.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(room_${name} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
endfunction()

# Rooms that no update of a training and no step of a decoding enters.
set(stretto_cool_rooms config report launcher experiment families lint plan seeds sweep distill)
function(stretto_optimise_less name)
  if(name IN_LIST stretto_cool_rooms)
    target_compile_options(room_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

# stretto_room_files(VARIABLE NAME): the .cpp files of src/NAME and its folders, but for those of
# libraries of their own. `families_engine` are those of src/families that need libtorch, `families` the others.
function(stretto_room_files variable name)
  string(REGEX REPLACE "_engine$" "" folder ${name})
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cpp)
  list(FILTER files EXCLUDE REGEX "/src/(distributed/(mpi|nccl)/|launcher/guard/|models/(option_conflicts|images/image_conflicts|synthesis/synthesis_conflicts|speech/(conformer_conflicts|conv_presets|speech_conflicts|speech_shapes))|train/schedule_end)")
  set(with_tensors "/src/families/([a-z0-9_]+/engine/|engine_)")
  if(name STREQUAL "families")
    list(FILTER files EXCLUDE REGEX ${with_tensors})
  elseif(name STREQUAL "families_engine")
    list(FILTER files INCLUDE REGEX ${with_tensors})
  endif()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# stretto_core_room(NAME [LIBRARIES…]): all .cpp files of src/NAME.
function(stretto_core_room name)
  stretto_room_files(sources ${name})
  add_library(room_${name} OBJECT ${sources})
  target_include_directories(room_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(room_${name} PUBLIC ${ARGN} PRIVATE stretto_warnings)
  target_sources(stretto_core PRIVATE $<TARGET_OBJECTS:room_${name}>)
  target_link_libraries(stretto_core PUBLIC ${ARGN})
  stretto_join_files(${name})
  stretto_optimise_less(${name})
endfunction()

# stretto_engine_room(NAME [SOURCES…]): the given files of src/NAME, or all of its .cpp files.
function(stretto_engine_room name)
  set(sources ${ARGN})
  if(NOT sources)
    stretto_room_files(sources ${name})
  endif()
  add_library(room_${name} OBJECT ${sources})
  target_include_directories(room_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(room_${name} PUBLIC stretto_torch PRIVATE stretto_warnings)
  target_precompile_headers(room_${name} REUSE_FROM stretto_pch)
  target_sources(stretto_engine PRIVATE $<TARGET_OBJECTS:room_${name}>)
  stretto_join_files(${name})
  stretto_optimise_less(${name})
endfunction()
