#if TPM && os(Linux)
import AssentCore
import CTSS2
import Crypto
import Foundation

/// Numbers of TPM 2.0 Part 2, in its names; the header's macros are casts that Swift does not import.
enum TPMNumber {
    static let algorithmECC: UInt16 = 0x0023
    static let algorithmSHA256: UInt16 = 0x000B
    static let algorithmAES: UInt16 = 0x0006
    static let algorithmCFB: UInt16 = 0x0043
    static let algorithmECDSA: UInt16 = 0x0018
    static let algorithmNull: UInt16 = 0x0010
    static let curveP256: UInt16 = 0x0003
    static let hashCheck: UInt16 = 0x8024
    static let hierarchyNull: UInt32 = 0x4000_0007
    static let capabilityProperties: UInt32 = 6
    static let propertyLockoutCounter: UInt32 = 0x200 + 14
    static let sessionHMAC: UInt8 = 0

    static let fixedTPM: UInt32 = 0x2
    static let fixedParent: UInt32 = 0x10
    static let sensitiveDataOrigin: UInt32 = 0x20
    static let userWithAuth: UInt32 = 0x40
    static let noDA: UInt32 = 0x400
    static let restricted: UInt32 = 0x10000
    static let decrypt: UInt32 = 0x20000
    static let sign: UInt32 = 0x40000

    static let continueSession: UInt8 = 0x01
    static let decryptCommand: UInt8 = 0x20
    static let encryptResponse: UInt8 = 0x40

    static let nvAuthWrite: UInt32 = 0x4
    static let nvCounter: UInt32 = 0x10
    static let nvAuthRead: UInt32 = 0x4_0000
    static let nvNoDA: UInt32 = 0x200_0000
    static let nvWritten: UInt32 = 0x2000_0000
}

/// What a key is for.
enum TPMKeyUse: String {
    case signing = "sign"
    case agreement = "agree"
}

extension TPM2B_PUBLIC {
    private static func p256(_ attributes: UInt32) -> TPM2B_PUBLIC {
        var result = TPM2B_PUBLIC()
        result.publicArea.type = TPMNumber.algorithmECC
        result.publicArea.nameAlg = TPMNumber.algorithmSHA256
        result.publicArea.objectAttributes = attributes
        result.publicArea.parameters.eccDetail.curveID = TPMNumber.curveP256
        result.publicArea.parameters.eccDetail.kdf.scheme = TPMNumber.algorithmNull
        result.publicArea.parameters.eccDetail.scheme.scheme = TPMNumber.algorithmNull
        result.publicArea.parameters.eccDetail.symmetric.algorithm = TPMNumber.algorithmNull
        return result
    }

    /// A storage key of the owner hierarchy, the same each time it is made.
    static var storageRoot: TPM2B_PUBLIC {
        var result = p256(
            TPMNumber.fixedTPM | TPMNumber.fixedParent | TPMNumber.sensitiveDataOrigin | TPMNumber.userWithAuth
                | TPMNumber.noDA | TPMNumber.restricted | TPMNumber.decrypt)
        result.publicArea.parameters.eccDetail.symmetric.algorithm = TPMNumber.algorithmAES
        result.publicArea.parameters.eccDetail.symmetric.keyBits.aes = 128
        result.publicArea.parameters.eccDetail.symmetric.mode.aes = TPMNumber.algorithmCFB
        return result
    }

    /// What a key of ours looks like. Tries are counted only where there is a PIN to guess.
    static func key(_ use: TPMKeyUse, hasPIN: Bool) -> TPM2B_PUBLIC {
        var result = p256(attributes(use, hasPIN: hasPIN))
        if use == .signing {
            result.publicArea.parameters.eccDetail.scheme.scheme = TPMNumber.algorithmECDSA
            result.publicArea.parameters.eccDetail.scheme.details.ecdsa.hashAlg = TPMNumber.algorithmSHA256
        }
        return result
    }

    private static func attributes(_ use: TPMKeyUse, hasPIN: Bool) -> UInt32 {
        TPMNumber.fixedTPM | TPMNumber.fixedParent | TPMNumber.sensitiveDataOrigin | TPMNumber.userWithAuth
            | (use == .signing ? TPMNumber.sign : TPMNumber.decrypt) | (hasPIN ? 0 : TPMNumber.noDA)
    }

    /// Whether this is a key as ``key(_:hasPIN:)`` makes them: made in a TPM, bound to it, for this use, and with the
    /// protection against guessing that the caller expects.
    func isKey(_ use: TPMKeyUse, hasPIN: Bool) -> Bool {
        publicArea.type == TPMNumber.algorithmECC && publicArea.nameAlg == TPMNumber.algorithmSHA256
            && publicArea.objectAttributes == Self.attributes(use, hasPIN: hasPIN)
            && publicArea.parameters.eccDetail.curveID == TPMNumber.curveP256 && publicArea.authPolicy.size == 0
    }

    /// The public point, uncompressed.
    var point: [UInt8]? {
        let point = publicArea.unique.ecc
        guard let x = TPMBytes.get(point.x.buffer, point.x.size), let y = TPMBytes.get(point.y.buffer, point.y.size),
            x.count <= 32, y.count <= 32
        else { return nil }
        let bytes = [4] + TPMBytes.padded(x) + TPMBytes.padded(y)
        return (try? P256.Signing.PublicKey(x963Representation: bytes)) == nil ? nil : bytes
    }
}

/// Sized buffers (`TPM2B_…`): a size and an array of fixed length, which Swift sees as a tuple.
enum TPMBytes {
    /// The first `size` bytes of a buffer; `nil` when it is shorter.
    static func get<Buffer>(_ buffer: Buffer, _ size: UInt16) -> [UInt8]? {
        withUnsafeBytes(of: buffer) { Int(size) <= $0.count ? Array($0.prefix(Int(size))) : nil }
    }

    /// Fills a buffer and returns the size to be set. Fails when the bytes do not fit.
    static func set<Buffer>(_ buffer: inout Buffer, _ bytes: [UInt8]) throws -> UInt16 {
        try withUnsafeMutableBytes(of: &buffer) { target in
            guard bytes.count <= target.count, let size = UInt16(exactly: bytes.count) else {
                throw TPMFailure.nonsense("\(bytes.count) bytes for a buffer of \(target.count)")
            }
            target.copyBytes(from: bytes)
            return size
        }
    }

    /// Overwrites a structure that held a secret.
    static func wipe<Structure>(_ structure: inout Structure) {
        withUnsafeMutableBytes(of: &structure) { bytes in
            bytes.withMemoryRebound(to: UInt8.self) { $0.update(repeating: 0) }
        }
    }

    /// 32 bytes, with the zeros in front that a TPM may leave out.
    static func padded(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8](repeating: 0, count: max(0, 32 - bytes.count)) + bytes
    }

    /// The authorization value that stands for a PIN of any length. A TPM ignores zeros at its end, so there are none.
    static func authorization(_ pin: Secret?) throws -> TPM2B_AUTH {
        var result = TPM2B_AUTH()
        guard let pin else { return result }
        let code = HMAC<SHA256>.authenticationCode(for: Data("assent tpm authorization".utf8), using: pin.symmetricKey)
        var bytes = Array(code)
        while bytes.last == 0 { bytes.removeLast() }
        result.size = try set(&result.buffer, bytes)
        return result
    }
}
#endif
