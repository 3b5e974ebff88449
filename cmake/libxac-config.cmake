# SPDX-License-Identifier: MIT
#
# libxac-config.cmake -- find_package(libxac) of CMake 3.16 or later.
#
#   find_package(libxac 0.2 REQUIRED)
#   target_link_libraries(program PRIVATE xac::xac)
#
# Targets
#   xac::xac       the shared library, or the static one if there is no other
#   xac::compiled  the hooks of xac-cc(1) besides; use xac_compile()
#
# Function
#   xac_compile(TARGET...)  compile the sources of a target by xac-cc, so that its loads and stores are
#                           announced, and link it with xac::compiled
#
# All paths are relative to this file, which is in LIBDIR/cmake/libxac.
get_filename_component(_xac_libdir "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
unset(_xac_include CACHE)
find_path(_xac_include xac.h NO_DEFAULT_PATH
    HINTS "${_xac_libdir}/../include" "${_xac_libdir}/../../include")
unset(_xac_launcher CACHE)
find_file(_xac_launcher xac-launch NO_DEFAULT_PATH
    HINTS "${_xac_libdir}/../share/libxac" "${_xac_libdir}/../../share/libxac")

foreach(_xac_file "${_xac_libdir}/libxac.so" "${_xac_libdir}/libxac.a")
    if(EXISTS "${_xac_file}" AND NOT DEFINED _xac_library)
        set(_xac_library "${_xac_file}")
    endif()
endforeach()
if(NOT _xac_include OR NOT DEFINED _xac_library)
    set(libxac_FOUND FALSE)
    set(libxac_NOT_FOUND_MESSAGE "no xac.h or no library beside ${CMAKE_CURRENT_LIST_DIR}")
    return()
endif()

if(NOT TARGET xac::xac)
    add_library(xac::xac UNKNOWN IMPORTED)
    set_target_properties(xac::xac PROPERTIES
        IMPORTED_LOCATION "${_xac_library}"
        INTERFACE_INCLUDE_DIRECTORIES "${_xac_include}")
    if(_xac_library MATCHES "\\.a$")
        find_package(PkgConfig REQUIRED)
        set(ENV{PKG_CONFIG_PATH} "${_xac_libdir}/pkgconfig:$ENV{PKG_CONFIG_PATH}")
        pkg_check_modules(_XAC REQUIRED libxac)
        set_target_properties(xac::xac PROPERTIES
            INTERFACE_LINK_LIBRARIES "${_XAC_STATIC_LDFLAGS}")
    endif()
endif()

if(NOT TARGET xac::compiled AND EXISTS "${_xac_libdir}/libxac-compiled.a")
    add_library(xac::compiled STATIC IMPORTED)
    set_target_properties(xac::compiled PROPERTIES
        IMPORTED_LOCATION "${_xac_libdir}/libxac-compiled.a"
        INTERFACE_LINK_LIBRARIES xac::xac
        INTERFACE_LINK_OPTIONS -rdynamic) # names for backtrace(3)
endif()

set(_xac_launcher_path "${_xac_launcher}" CACHE INTERNAL "xac_compile() runs compilers by it")
function(xac_compile)
    foreach(target IN LISTS ARGN)
        set_target_properties(${target} PROPERTIES
            C_COMPILER_LAUNCHER "${_xac_launcher_path}"
            CXX_COMPILER_LAUNCHER "${_xac_launcher_path}")
        target_link_libraries(${target} PRIVATE xac::compiled)
    endforeach()
endfunction()

unset(_xac_library)
unset(_xac_libdir)
