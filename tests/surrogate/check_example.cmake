# cmake -DPAGE=<file> -DPART=<file> -P check_example.cmake
# Fails unless PAGE contains the whole of PART.
cmake_minimum_required(VERSION 3.24...3.31)
file(READ ${PAGE} page)
file(READ ${PART} part)
string(FIND "${page}" "${part}" place)
if(place EQUAL -1)
  message(FATAL_ERROR "${PAGE} does not show ${PART} as it is: copy it")
endif()
