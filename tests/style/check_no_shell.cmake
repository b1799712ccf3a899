# cmake -DROOT=<source directory> -P check_no_shell.cmake
# Fails if a file uses a shell, or starts a program and is not one of the few that may (docs/security.md). A finding is
# file: rule.
cmake_minimum_required(VERSION 3.24...3.31)
include(${CMAKE_CURRENT_LIST_DIR}/sources.cmake)

# These files may start programs: the guard starts what the session names, the launch of local ranks and its GPU twin
# start krigtune-bench itself, core/short_program starts one of our own programs to learn whether it can start or use
# attention on Hopper, and `krigtune report --open` starts the desktop's xdg-open.
set(may_start "^src/(trial/guard|programs/bench/local_launch|programs/bench/cuda_program|core/short_program|programs/krigtune/report)[.]cpp$")
# These files may name a shell without starting one: it is what a user's command or the first line of a script begins
# with, what completion is written for, and what runs the script that a batch scheduler starts on a node (every word in
# it is quoted).
set(may_name "^src/(trial/program|jobs/command/shell_line|jobs/installed/interpreter|executor/job_files|programs/krigtune/completion)[.]cpp$")

set(calls "(^|[^A-Za-z0-9_.>])(system|popen|wordexp) ?[(]")
set(starts "(^|[^A-Za-z0-9_.>])(exec[lv]p?e?|execvpe|fexecve|execveat|posix_spawnp?) ?[(]")
set(shells "\"[^\"]*(/(ba|da|z|k|c)?sh[ \"\\\\]|sh -c)|\"(ba|da|z|k|c)?sh\"")

get_filename_component(ROOT "${ROOT}" ABSOLUTE)
set(bad "")
set(count 0)
list_sources(files include src surrogate)

# find(<regex> <regex of exempt paths> <message>)
macro(find regex not_in say)
  if(NOT "${path}" MATCHES "${not_in}")
    file(STRINGS ${file} hits REGEX "${regex}")
    foreach(hit IN LISTS hits)
      # Comments and members of that name are allowed.
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
