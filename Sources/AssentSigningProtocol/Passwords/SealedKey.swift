package import AssentCore
import Crypto
import Foundation

/// Where a private key that a password protects belongs: the associated data of its blob (TSP/1 "Sealed keys").
package struct SealedKeyContext: Sendable {
    package let mode: PasswordMode
    package let issuer: String
    package let did: SigningID
    package let slot: PasswordSlot
    package let kid: KeyThumbprint
    package let generation: Int
    package let cost: PasswordCost
    /// The slot's salt: 16 bytes.
    package let salt: [UInt8]

    package init(
        mode: PasswordMode, issuer: String, did: SigningID, slot: PasswordSlot, kid: KeyThumbprint, generation: Int,
        cost: PasswordCost, salt: [UInt8]
    ) {
        (self.mode, self.issuer, self.did, self.slot, self.kid) = (mode, issuer, did, slot, kid)
        (self.generation, self.cost, self.salt) = (generation, cost, salt)
    }

    /// All of it, as it stands at the beginning of the blob.
    package var associatedData: [UInt8] {
        var bytes = Array("AssentB\n".utf8) + Frame.bigEndian(UInt16(1)) + [mode == .local ? 1 : 2]
        for text in [issuer, did.text, slot.rawValue, kid.text] {
            bytes += Frame.bigEndian(UInt32(truncatingIfNeeded: text.utf8.count)) + text.utf8
        }
        bytes += Frame.bigEndian(UInt32(truncatingIfNeeded: generation))
        bytes += [cost.logN, cost.r, cost.p].map { UInt8(truncatingIfNeeded: $0) }
        return bytes + salt
    }

    /// The key that seals it, 32 bytes. It is made of `s`, which scrypt has made of the password, and for `assisted` of
    /// the VOPRF's output, too.
    ///
    /// - Throws: `modeUnsupported` when there is an output for `local`, or none for `assisted`: a key that the password
    ///   alone opens must never take the place of one that needs the server.
    package func key(s: Secret, output: Secret?) throws(SigningProtocolError) -> Secret {
        let label: String
        let material: Frame
        switch (mode, output) {
        case (.assisted, let output?):
            label = "tsp/1 kek"
            material = Frame("tsp/1 kek ikm", .bytes(s.revealBytes()), .bytes(output.revealBytes()))
        case (.local, nil):
            label = "tsp/1 kek local"
            material = Frame("tsp/1 kek local ikm", .bytes(s.revealBytes()))
        case (.assisted, nil), (.local, _?):
            throw SigningProtocolError(.modeUnsupported, "The server's part of the key does not fit the slot's mode.")
        }
        let info = Frame(
            label, .text(issuer), .text(did.text), .text(slot.rawValue), .text(kid.text),
            .integer(UInt64(clamping: generation)))
        return Secret(
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: material.bytes), salt: salt, info: info.bytes, outputByteCount: 32)
        )
    }
}

/// What is sealed: a private key, and what must not come back as its next password.
package struct SealedKeyContent: Sendable {
    /// A password that was replaced.
    package struct Earlier: Sendable {
        package let salt: [UInt8]
        /// What scrypt made of it.
        package let s: Secret

        package init(salt: [UInt8], s: Secret) { (self.salt, self.s) = (salt, s) }
    }

    /// The private scalar: 32 bytes.
    package let scalar: Secret
    /// When the password was set, by the server's clock.
    package let passwordTime: Int
    /// Earlier passwords, the newest first.
    package let history: [Earlier]

    package init(scalar: Secret, passwordTime: Int, history: [Earlier]) {
        (self.scalar, self.passwordTime, self.history) = (scalar, passwordTime, history)
    }

    var bytes: Secret {
        var bytes = scalar.revealBytes() + Frame.bigEndian(UInt64(clamping: passwordTime))
        bytes.append(UInt8(clamping: history.count))
        for earlier in history { bytes += earlier.salt + earlier.s.revealBytes() }
        return Secret(bytes: bytes)
    }

    init?(_ content: [UInt8]) {
        guard content.count >= 41, content.count == 41 + Int(content[40]) * 48 else { return nil }
        let time = content[32..<40].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard time <= UInt64(StrictJSON.maximumInteger) else { return nil }
        scalar = Secret(bytes: content[..<32])
        passwordTime = Int(time)
        history = (0..<Int(content[40])).map { index in
            let start = 41 + index * 48
            return Earlier(salt: Array(content[start..<start + 16]), s: Secret(bytes: content[start + 16..<start + 48]))
        }
    }
}

/// A private key under the key that a password makes: the inner blob of TSP/1 "Sealed keys".
package enum SealedKey {
    private static let nonceLength = 12
    private static let tagLength = 16

    /// Seals a key; `kek` is ``SealedKeyContext/key(s:output:)``.
    package static func seal(
        _ content: SealedKeyContent, in context: SealedKeyContext, with kek: Secret, random: any RandomSource
    ) throws(SigningProtocolError) -> [UInt8] {
        let data = context.associatedData
        let nonce = random.bytes(nonceLength)
        do {
            let box = try content.bytes.withUnsafeBytes { bytes in
                try AES.GCM.seal(
                    bytes, using: kek.symmetricKey, nonce: AES.GCM.Nonce(data: nonce), authenticating: data)
            }
            return data + nonce + box.ciphertext + box.tag
        } catch {
            throw SigningProtocolError(.malformed, "The key cannot be sealed.")
        }
    }

    /// Opens a key.
    ///
    /// - Throws: ``SigningProtocolError``: with `wrongRecipient` when the blob belongs elsewhere, `malformed` when it
    ///   is none, and `decryptionFailed` when `kek` is another key: the password was wrong.
    package static func open(
        _ blob: [UInt8], in context: SealedKeyContext, with kek: Secret
    ) throws(SigningProtocolError) -> SealedKeyContent {
        let data = context.associatedData
        guard blob.starts(with: data) else {
            throw SigningProtocolError(.wrongRecipient, "The sealed key belongs elsewhere.")
        }
        let rest = blob.dropFirst(data.count)
        guard rest.count > nonceLength + tagLength else {
            throw SigningProtocolError(.malformed, "The sealed key is too short.")
        }
        let opened: [UInt8]
        do {
            let box = try AES.GCM.SealedBox(
                nonce: AES.GCM.Nonce(data: rest.prefix(nonceLength)),
                ciphertext: rest.dropFirst(nonceLength).dropLast(tagLength), tag: rest.suffix(tagLength))
            opened = try Array(AES.GCM.open(box, using: kek.symmetricKey, authenticating: data))
        } catch {
            throw SigningProtocolError(.decryptionFailed, "The sealed key does not open.")
        }
        guard let content = SealedKeyContent(opened) else {
            throw SigningProtocolError(.malformed, "The sealed data is not a key.")
        }
        return content
    }
}
