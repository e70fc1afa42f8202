# Read by ctest: makes a test of each suite of a GoogleTest program, with a process of its own, since starting
# one that links libtorch takes longer than most tests; and of each test where a suite takes minutes.
#   PROGRAM  its path; LIST the file to write; LABELS; APART the suites of whose tests each is one of ctest's;
#   SETTINGS the file that says so
get_filename_component(name ${PROGRAM} NAME)
if(NOT EXISTS ${PROGRAM})
  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)
  set_tests_properties(${name}_NOT_BUILT PROPERTIES LABELS "${LABELS}")
  return()
endif()

function(stretto_list_suites)
  execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed RESULT_VARIABLE failed TIMEOUT 120)
  if(failed)
    message(FATAL_ERROR "${PROGRAM} --gtest_list_tests failed: ${failed}")
  endif()
  string(REGEX REPLACE "[][;]" "_" listed "${listed}")  # which mean something in a list; no test is called so
  string(REPLACE "\n" ";" lines "${listed}")
  set(tests "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^([A-Za-z0-9_/]+)\\.([ \t]+#.*)?$")
      set(suite ${CMAKE_MATCH_1})
      list(FIND APART ${suite} apart)
      if(apart EQUAL -1)
        list(APPEND tests "${suite}|${suite}.*|1")
      endif()
    elseif(line MATCHES "^[ \t]+([A-Za-z0-9_/]+)" AND NOT apart EQUAL -1)
      list(APPEND tests "${suite}.${CMAKE_MATCH_1}|${suite}.${CMAKE_MATCH_1}|100")
    endif()
  endforeach()
  set(script "")
  foreach(test IN LISTS tests)
    string(REPLACE "|" ";" parts "${test}")
    list(GET parts 0 title)
    list(GET parts 1 filter)
    list(GET parts 2 cost)
    string(APPEND script "add_test([=[${title}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${filter}]=])\n"
      # ctest runs a test on each core: threads of several that wait busily take seven times as long.
      "set_tests_properties([=[${title}]=] PROPERTIES LABELS [=[${LABELS}]=] TIMEOUT 600 COST ${cost} "
      "ENVIRONMENT OMP_WAIT_POLICY=passive "
      # All of its tests left themselves out, and none failed: the list of skipped tests is the last one.
      "SKIP_REGULAR_EXPRESSION [=[\\[  PASSED  \\] 0 tests\\.\n(\\[  SKIPPED \\][^\n]*\n)+([^[]|$)]=])\n")
  endforeach()
  if(NOT tests)
    message(FATAL_ERROR "${PROGRAM} lists no tests")
  endif()
  # Whole or not at all: another ctest may read it.
  string(RANDOM LENGTH 8 suffix)
  file(WRITE ${LIST}.${suffix} "${script}")
  file(RENAME ${LIST}.${suffix} ${LIST})
endfunction()

if(${PROGRAM} IS_NEWER_THAN ${LIST} OR ${CMAKE_CURRENT_LIST_FILE} IS_NEWER_THAN ${LIST}
   OR ${SETTINGS} IS_NEWER_THAN ${LIST})
  stretto_list_suites()
endif()
include(${LIST})
