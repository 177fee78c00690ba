import AssentCore
import Crypto

/// The network of an address as the database has it: a hash under a key that the database does not have. Networks are
/// few enough to try them all, so a hash without a key would hide nothing. Realm and user are in it, so that nobody can
/// see from two rows that two users were at the same place, and no row stands for another user.
struct NetworkHash: Sendable, Hashable {
    /// Unpadded base64url.
    let text: String

    /// The hash for a user of a realm at an address.
    ///
    /// - Parameters:
    ///   - address: any address of the network.
    ///   - user: whose it is.
    ///   - key: the master key; the hash has a key of its own purpose.
    init(of address: IPAddress, user: User, key: MasterKey) {
        // A realm and an id have no U+0000. The rest has 3, 6 or 15 bytes, and stands at the end.
        let frame = Array(user.realm.utf8) + [0] + Array(user.id.utf8) + [0] + address.siteBytes
        let code = HMAC<SHA256>.authenticationCode(
            for: frame, using: key.derivedSecret(for: .usualNetwork).symmetricKey)
        text = Base64URL.encode(Array(code))
    }
}

extension IPAddress {
    /// What the addresses of one site usually have in common: 24 bits of IPv4, 48 bits of IPv6 (RFC 6177 §2). A
    /// provider may give a subscriber another address of it at any time. Behind a translator of IPv4 (RFC 6052 §2.1,
    /// RFC 7755) all of IPv4 is in one /96, so that its 24 bits follow.
    var siteBytes: [UInt8] {
        let translated: [UInt8] = [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0]
        if bytes.starts(with: translated) { return Array(bytes.prefix(15)) }
        return Array(bytes.prefix(family == .ipv4 ? 3 : 6))
    }
}
