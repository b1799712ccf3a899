# cmake -DROOT=<source directory> -P check_no_shell.cmake
# No shell, and programs are started in few places only (docs/security.md). Each finding: file:line: rule.
cmake_minimum_required(VERSION 3.24...3.31)

# Who may start programs, and what: the guard what the session names, the launch of local ranks and its GPU twin
# krigtune-bench itself, core/short_program one of our own programs to learn whether it can start or attend on Hopper,
# `krigtune report --open` the desktop's xdg-open.
set(may_start "^src/(trial/guard|programs/bench/local_launch|programs/bench/cuda_program|core/short_program|programs/krigtune/report)[.]cpp$")
# Who may name a shell without starting one: the completion that is written for it, what a user's command begins with, the first line of a script, and the
# script that a batch scheduler runs on a node (every word in it quoted).
set(may_name "^src/(trial/program|deepspeed/job/ds_probe|executor/job_files|programs/krigtune/completion)[.]cpp$")

set(calls "(^|[^A-Za-z0-9_.>])(system|popen|wordexp) ?[(]")
set(starts "(^|[^A-Za-z0-9_.>])(exec[lv]p?e?|execvpe|fexecve|execveat|posix_spawnp?) ?[(]")
set(shells "\"[^\"]*(/(ba|da|z|k|c)?sh[ \"\\\\]|sh -c)|\"(ba|da|z|k|c)?sh\"")

get_filename_component(ROOT "${ROOT}" ABSOLUTE)
set(bad "")
set(count 0)
foreach(tree IN ITEMS include src surrogate)
  foreach(suffix IN ITEMS h hpp inl cpp cc cu cuh)
    file(GLOB_RECURSE found ${ROOT}/${tree}/*.${suffix})
    list(APPEND files ${found})
  endforeach()
endforeach()
if(NOT files)
  message(FATAL_ERROR "no source files below ${ROOT}: nothing was checked")
endif()

# find(<regex> <regex of the paths that it does not hold for> <say>)
macro(find regex not_in say)
  if(NOT "${path}" MATCHES "${not_in}")
    file(STRINGS ${file} hits REGEX "${regex}")
    foreach(hit IN LISTS hits)
      # A comment, or a member of that name.
      if(NOT "${hit}" MATCHES "^ *//|: system[(]std::move")
        list(APPEND bad "${path}: ${say}")
      endif()
    endforeach()
  endif()
endmacro()

foreach(file IN LISTS files)
  file(RELATIVE_PATH path ${ROOT} ${file})
  find("${calls}" "^$" "a shell: trial::run_process starts a program by its words")
  find("${starts}" "${may_start}" "programs are started by trial::run_process")
  find("${shells}" "${may_name}" "names a shell")
endforeach()
if(bad)
  list(JOIN bad "\n  " text)
  message(FATAL_ERROR "shells:\n  ${text}")
endif()
list(LENGTH files count)
message(STATUS "${count} files, no shell")
