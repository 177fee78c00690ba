package import AssentCore
import Crypto

extension PayloadSecrets {
    private static let keyLength = 32

    /// How many bytes ``stored`` has.
    package static let storedLength = 2 * keyLength

    /// What a node needs to open and seal the messages of the session: the keys of both directions. Anyone who has it
    /// reads the session's messages, so it is stored sealed.
    package var stored: Secret {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.storedLength)
        request.withUnsafeBytes { bytes += $0 }
        reply.withUnsafeBytes { bytes += $0 }
        return Secret(bytes: bytes)
    }

    /// The secrets of a session that another node has agreed on. The confirmation was sent by that one and is empty.
    ///
    /// - Throws: ``PayloadError/badKey`` for bytes of another length.
    package init(session: [UInt8], stored: Secret) throws(PayloadError) {
        let bytes = stored.withUnsafeBytes { Array($0) }
        guard session.count == Self.sessionLength, bytes.count == Self.storedLength else { throw .badKey }
        self.session = session
        request = SymmetricKey(data: bytes.prefix(Self.keyLength))
        reply = SymmetricKey(data: bytes.suffix(Self.keyLength))
        confirmation = []
    }
}
