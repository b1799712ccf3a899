# cmake -DNM=<nm> -DUNIT=<name> -DOBJECTS=<object files, separated by |> -P check_vector_units.cmake
# Fails if the objects of one vector unit hold a symbol of which the linker keeps one copy for the whole program (weak:
# inline functions, templates) and which is not under this unit's own names: a program that then ran it on a machine
# without that vector unit would die there.
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
    # V, W: weak; u: unique in the process. No code are DW.ref.* (a pointer to the unwinder's routine)
    # and our constants krigtune::kSomething.
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
