# cmake -DROOT=<source directory> -P check_runners.cmake
# Fails if a file outside src/runner asks which runner a session has. All others ask a question (runner/runner.h): what a
# trial costs, whether its values repeat, which command it starts, ... A new runner then answers in its own file, and
# nothing else has to learn its name. A finding is file:line: rule.
cmake_minimum_required(VERSION 3.24...3.31)
include(${CMAKE_CURRENT_LIST_DIR}/sources.cmake)

set(room "^src/runner/")
set(kinds "bench|simulate|replay|command|deepspeed|none")
set(settings "(Bench|Simulate|Replay|Command|DeepSpeed)Spec|NoRunner")
set(say "only src/runner knows which runner it is: ask a question of runner/runner.h")

set(by_type "(is|is_same|is_same_v|get|get_if|holds_alternative)<[A-Za-z_:, ]*(${settings})[>,]")
set(by_visit "visit[(].*[.]runner[)]|^ *([a-z_]+[.])+runner[)]")
set(by_name "traits_of(_block)?[(].*[)][.]name *[=!]=|(traits|runner)[.]name *[=!]=|[=!]= *runner::traits_of")
set(by_key "\"kind\".*[=!]= *\"|kind *[=!]= *\"(${kinds})\"|\"(${kinds})\" *[=!]= *[a-z_.]*kind")

get_filename_component(ROOT "${ROOT}" ABSOLUTE)
list_sources(files include src)

# Line numbers are looked up only in the few files with a finding. A line that is a comment is allowed.
macro(report_places)
  file(READ ${file} text)
  string(REPLACE ";" "," text "${text}")
  string(REGEX REPLACE "[][\\]" " " text "${text}")
  string(REPLACE "\n" ";" lines "${text}")
  set(number 0)
  foreach(line IN LISTS lines)
    math(EXPR number "${number} + 1")
    if("${line}" MATCHES "${asks}" AND NOT "${line}" MATCHES "^ *//")
      list(APPEND bad "${path}:${number}: ${say}")
    endif()
  endforeach()
endmacro()

set(asks "${by_type}|${by_visit}|${by_name}|${by_key}")
set(bad "")
foreach(file IN LISTS files)
  file(RELATIVE_PATH path ${ROOT} ${file})
  if(NOT "${path}" MATCHES "${room}")
    file(STRINGS ${file} hits REGEX "${asks}" LIMIT_COUNT 1)
    if(hits)
      report_places()
    endif()
  endif()
endforeach()
if(bad)
  list(LENGTH bad count)
  list(JOIN bad "\n  " text)
  message(FATAL_ERROR "${count} places ask which runner it is:\n  ${text}")
endif()
list(LENGTH files count)
message(STATUS "${count} files, 0 places ask which runner it is")
