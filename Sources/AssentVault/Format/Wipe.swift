package import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#else
import Glibc
#endif

/// Overwrites buffers that held a secret, in a way that the compiler does not leave out.
///
/// Only the buffer itself: copies that Swift made on the way (when an array grew, or was shared) are not reached, so
/// that a buffer to be wiped is made at its full size and handed to nobody.
package enum Wipe {
    package static func bytes(_ buffer: inout [UInt8]) {
        buffer.withUnsafeMutableBytes { clear($0) }
    }

    package static func bytes(_ buffer: inout Data) {
        buffer.withUnsafeMutableBytes { clear($0) }
    }

    private static func clear(_ bytes: UnsafeMutableRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        #if canImport(Darwin)
        memset_s(start, bytes.count, 0, bytes.count)
        #elseif canImport(Android)
        memset(start, 0, bytes.count)
        #else
        explicit_bzero(start, bytes.count)
        #endif
    }
}
