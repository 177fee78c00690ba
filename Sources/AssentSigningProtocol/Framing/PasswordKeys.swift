package import AssentCore

/// What a password slot's secrets are made of (TSP/1 "Hashes and derived keys"); ``SealedKeyContext`` makes its keys.
package enum PasswordKeys {
    /// The VOPRF's input, for `s` = scrypt of the password.
    package static func oprfInput(
        issuer: String, did: SigningID, slot: PasswordSlot, generation: UInt64, s: Secret
    ) -> Secret {
        let frame = Frame(
            "tsp/1 oprf", .text(issuer), .text(did.text), .text(slot.rawValue), .integer(generation),
            .bytes(s.revealBytes()))
        return Secret(bytes: frame.bytes)
    }
}
