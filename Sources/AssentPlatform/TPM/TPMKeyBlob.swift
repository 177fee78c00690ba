#if TPM && os(Linux)
import AssentCore
import CTSS2
import Foundation

/// A key as the TPM wraps it, and its file: `ASTPM`, version, then root name, public and private part, each with its
/// length in two bytes (big-endian). Only the TPM that made it can use it.
struct TPMKeyBlob {
    static let sizeLimit = 4_096
    private static let magic = Array("ASTPM".utf8)
    private static let version: UInt8 = 1

    let privatePart: TPM2B_PRIVATE
    let publicPart: TPM2B_PUBLIC

    func encoded(rootName: [UInt8]) throws -> [UInt8] {
        var privatePart = privatePart
        var publicPart = publicPart
        return try Self.magic + [Self.version] + Self.counted(rootName)
            + Self.counted(Self.marshalled { Tss2_MU_TPM2B_PUBLIC_Marshal(&publicPart, $0, $1, $2) })
            + Self.counted(Self.marshalled { Tss2_MU_TPM2B_PRIVATE_Marshal(&privatePart, $0, $1, $2) })
    }

    /// - Returns: the key, and the name of the storage root key under which it was made.
    static func decode(_ bytes: [UInt8]) throws(KeyProviderError) -> (blob: TPMKeyBlob, rootName: [UInt8]) {
        var rest = bytes[...]
        guard rest.starts(with: magic), rest.count > magic.count else { throw TPMFailure.changedKey }
        rest = rest.dropFirst(magic.count)
        guard rest.first == version else {
            if let found = rest.first, found > version {
                throw KeyProviderError(
                    .newerFormat, "A newer version of this library wrote this key's file. Update the application.")
            }
            throw TPMFailure.changedKey
        }
        rest = rest.dropFirst()
        guard let rootName = field(&rest), let publicBytes = field(&rest), let privateBytes = field(&rest), rest.isEmpty
        else { throw TPMFailure.changedKey }
        var publicPart = TPM2B_PUBLIC()
        var privatePart = TPM2B_PRIVATE()
        var read = 0
        guard Tss2_MU_TPM2B_PUBLIC_Unmarshal(publicBytes, publicBytes.count, &read, &publicPart) == 0,
            read == publicBytes.count
        else { throw TPMFailure.changedKey }
        read = 0
        guard Tss2_MU_TPM2B_PRIVATE_Unmarshal(privateBytes, privateBytes.count, &read, &privatePart) == 0,
            read == privateBytes.count
        else { throw TPMFailure.changedKey }
        return (TPMKeyBlob(privatePart: privatePart, publicPart: publicPart), rootName)
    }

    private static func field(_ bytes: inout ArraySlice<UInt8>) -> [UInt8]? {
        guard bytes.count >= 2 else { return nil }
        let length = bytes.prefix(2).reduce(0) { $0 << 8 | Int($1) }
        bytes = bytes.dropFirst(2)
        guard bytes.count >= length else { return nil }
        defer { bytes = bytes.dropFirst(length) }
        return Array(bytes.prefix(length))
    }

    private static func counted(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8(truncatingIfNeeded: bytes.count >> 8), UInt8(truncatingIfNeeded: bytes.count)] + bytes
    }

    private static func marshalled(
        _ marshal: (UnsafeMutablePointer<UInt8>?, Int, UnsafeMutablePointer<Int>) -> TSS2_RC
    ) throws -> [UInt8] {
        var written = 0
        var buffer = [UInt8](repeating: 0, count: sizeLimit)
        let failure = marshal(&buffer, sizeLimit, &written)
        guard failure == 0 else { throw TPMFailure(code: failure, action: "writing a key").error }
        return Array(buffer.prefix(written))
    }
}
#endif
