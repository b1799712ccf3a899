# cmake -DMODULE=<headers.cmake> -DSCRATCH=<directory> -DCOMPILER=<path> -P headers_catch.cmake
# Proves that the header check can fail: a tree builds with a header that includes what it uses, but not with a header
# that does not, nor with one without an include guard.
cmake_minimum_required(VERSION 3.24...3.31)

# Builds a project with `header` as its only public header, and sets `result` to the exit status of the build.
function(build_with header result output)
  file(WRITE ${SCRATCH}/include/krigtune/core/planted.h "${header}")
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${SCRATCH}/build --target style_headers
                  RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(${result} ${code} PARENT_SCOPE)
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
file(WRITE ${SCRATCH}/include/krigtune/core/planted.h "")
file(WRITE ${SCRATCH}/CMakeLists.txt "cmake_minimum_required(VERSION 3.24...3.31)
project(planted CXX)
include([[${MODULE}]])
add_header_check([[${SCRATCH}]] INCLUDE include)
")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SCRATCH} -B ${SCRATCH}/build -G Ninja -DCMAKE_CXX_COMPILER=${COMPILER}
                COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)

build_with("#pragma once\n#include <string>\nstruct Planted { std::string name; };\n" code text)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "a header that stands alone was refused:\n${text}")
endif()
build_with("#pragma once\nstruct Planted { std::string name; };\n" code text)
if(code EQUAL 0 OR NOT "${text}" MATCHES "string")
  message(FATAL_ERROR "a header without its #include was not refused for it:\n${text}")
endif()
build_with("struct Planted { int value; };\n" code text)
if(code EQUAL 0 OR NOT "${text}" MATCHES "redefinition")
  message(FATAL_ERROR "a header without an include guard was not refused for it:\n${text}")
endif()
file(REMOVE_RECURSE ${SCRATCH})
