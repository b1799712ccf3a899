# find_package(krigtune) gives krigtune::surrogate (krigtune/surrogate/*.h) and krigtune::library (krigtune/tuning.h).
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(Eigen3 3.4)
find_dependency(NLopt)
find_dependency(fmt 9)
find_dependency(yaml-cpp)
include(${CMAKE_CURRENT_LIST_DIR}/krigtuneTargets.cmake)
