#pragma once
#include <dlfcn.h>

#include <memory>

namespace krigtune::engine {

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
/// A library opened at run time; null where it cannot be.
using SharedLibrary = std::unique_ptr<void, CloseLibrary>;

inline SharedLibrary open_library(const char* name) { return SharedLibrary(dlopen(name, RTLD_NOW | RTLD_LOCAL)); }

/// Null where the library has no such function.
template <class Function>
Function* find(const SharedLibrary& library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library.get(), name));
}

}  // namespace krigtune::engine
