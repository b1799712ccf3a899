# cmake -DNM=<nm> -DUNIT=<name> -DOBJECTS=<object files, separated by |> -P check_vector_units.cmake
# Fails if the objects of one vector unit contain a weak symbol (an inline function or a template) that is not under the
# unit's own names. The linker keeps one copy of such a symbol for the whole program, and if it is this one, the program
# crashes on a machine without that vector unit.
cmake_minimum_required(VERSION 3.24...3.31)

string(REPLACE "|" ";" objects "${OBJECTS}")
if(NOT objects)
  message(FATAL_ERROR "no objects: nothing was checked")
endif()
set(bad "")
set(count 0)
foreach(object IN LISTS objects)
  execute_process(COMMAND ${NM} --defined-only ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" lines "${symbols}")
  foreach(line IN LISTS lines)
    # V and W are weak symbols, and u is unique in the process. DW.ref.* (a pointer to the unwinder's routine) and our
    # constants krigtune::kSomething are not code.
    if(NOT line MATCHES " [VWu] (.*)" OR line MATCHES "DW[.]ref[.]")
      continue()
    endif()
    math(EXPR count "${count} + 1")
    if(NOT line MATCHES "Eigen_${UNIT}|krigtune([0-9]+[a-z]+)*[0-9]+${UNIT}|krigtune([0-9]+[a-z]+)*[0-9]+k[A-Z][A-Za-z]*E$")
      list(APPEND bad "${object}: ${line}")
    endif()
  endforeach()
endforeach()
if(bad)
  list(JOIN bad "\n  " text)
  message(FATAL_ERROR "symbols that other objects may get from these:\n  ${text}")
endif()
message(STATUS "${count} weak symbols, all under the names of ${UNIT}")
