package import AssentCore
import Crypto

/// What a password slot's secrets are made of (TSP/1 "Hashes and derived keys").
package enum PasswordKeys {
    /// The VOPRF's input, for `s` = scrypt of the password.
    package static func oprfInput(
        issuer: String, did: SigningID, slot: PasswordSlot, generation: UInt64, s: Secret
    ) -> Secret {
        Secret(
            bytes: Frame(
                "tsp/1 oprf", .text(issuer), .text(did.text), .text(slot.rawValue), .integer(generation),
                .bytes(s.revealBytes())
            ).bytes)
    }

    /// The key that seals a private key of an `assisted` slot; `o` is the VOPRF's output.
    package static func assisted(
        s: Secret, o: Secret, salt: [UInt8], issuer: String, did: SigningID, slot: PasswordSlot, kid: KeyThumbprint,
        generation: UInt64
    ) -> Secret {
        derived(
            Frame("tsp/1 kek ikm", .bytes(s.revealBytes()), .bytes(o.revealBytes())), salt: salt,
            info: info("tsp/1 kek", issuer, did, slot, kid, generation))
    }

    /// The key that seals a private key of a `local` slot.
    package static func local(
        s: Secret, salt: [UInt8], issuer: String, did: SigningID, slot: PasswordSlot, kid: KeyThumbprint,
        generation: UInt64
    ) -> Secret {
        derived(
            Frame("tsp/1 kek local ikm", .bytes(s.revealBytes())), salt: salt,
            info: info("tsp/1 kek local", issuer, did, slot, kid, generation))
    }

    private static func info(
        _ label: String, _ issuer: String, _ did: SigningID, _ slot: PasswordSlot, _ kid: KeyThumbprint,
        _ generation: UInt64
    ) -> Frame {
        Frame(
            label, .text(issuer), .text(did.text), .text(slot.rawValue), .text(kid.text), .integer(generation))
    }

    private static func derived(_ material: Frame, salt: [UInt8], info: Frame) -> Secret {
        Secret(
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: material.bytes), salt: salt, info: info.bytes, outputByteCount: 32)
        )
    }
}
