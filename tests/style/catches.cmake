# cmake -DCHECK=<script> -DSCRATCH=<directory> -DFILE=<path> [-DTEXT=<text> | -DLINES=<n>] [-DEXPECT=<regex>]
#       -P catches.cmake
# Proves that a check can fail. FILE (with TEXT, or with n empty lines) is added to a small tree that passes the check,
# which must then fail with a message that matches EXPECT. Without EXPECT the tree with FILE must pass.
cmake_minimum_required(VERSION 3.24...3.31)

function(run_check result output)
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${SCRATCH} -P ${CHECK} RESULT_VARIABLE code OUTPUT_VARIABLE text
                  ERROR_VARIABLE text)
  set(${result} ${code} PARENT_SCOPE)
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
file(WRITE ${SCRATCH}/src/core/units.h
     "#pragma once\nnamespace krigtune {\nstruct Bytes {\n}\n}  // namespace krigtune\n")
file(WRITE ${SCRATCH}/src/run/loop.h "#pragma once\n#include \"core/units.h\"\n")
file(WRITE ${SCRATCH}/src/engine/trainer.h "#pragma once\n")
file(WRITE ${SCRATCH}/src/space/space.h "#pragma once\n")
file(WRITE ${SCRATCH}/src/cost/time/step_cost.h "#pragma once\n")
file(WRITE ${SCRATCH}/surrogate/include/krigtune/surrogate/kernel.h "#pragma once\n")
file(WRITE ${SCRATCH}/src/run/loop.cpp "#include \"run/loop.h\"\n\n#include \"core/units.h\"\n")
run_check(code text)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "the tree without a violation was refused:\n${text}")
endif()

if(DEFINED LINES)
  string(REPEAT "\n" ${LINES} TEXT)
endif()
file(WRITE ${SCRATCH}/${FILE} "${TEXT}\n")
run_check(code text)
file(REMOVE_RECURSE ${SCRATCH})

if(NOT DEFINED EXPECT)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "refused, though nothing is wrong:\n${text}")
  endif()
elseif(code EQUAL 0)
  message(FATAL_ERROR "not noticed: ${FILE}")
elseif(NOT "${text}" MATCHES "${EXPECT}")
  message(FATAL_ERROR "refused for another reason than '${EXPECT}':\n${text}")
endif()
