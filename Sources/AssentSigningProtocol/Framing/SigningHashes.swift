package import AssentCore
import Crypto

/// The named hashes of TSP/1. Those of messages are over the whole compact text, as it was sent.
extension FixedBytes<HashBytes> {
    /// `rqh`: what a reply answers. `request` is the compact proof, for `start` the compact `tsp-start+jwt`.
    package static func request(_ request: String) -> SigningHash { Frame("tsp/1 request", .text(request)).hash }

    /// What a device binds itself to before it sees the server's nonce.
    package static func commitment(nonceD: SigningNonce, keys: SigningKeyList) -> SigningHash {
        Frame("tsp/1 commitment", .bytes(nonceD.bytes), .bytes(keys.frame.bytes)).hash
    }

    /// The hash of a compact `tsp-offer+jwt`.
    package static func offer(_ offer: String) -> SigningHash { Frame("tsp/1 offer", .text(offer)).hash }

    /// The hash of a compact `tsp-enrol+jwt`.
    package static func enrolment(_ enrol: String) -> SigningHash { Frame("tsp/1 enrolment", .text(enrol)).hash }

    /// The hash of a compact `tsp-record+jwt`.
    package static func record(_ record: String) -> SigningHash { Frame("tsp/1 record", .text(record)).hash }

    /// `req` of a relying party: `details` is the text `authorization_details` as it was received.
    package static func details(_ details: String) -> SigningHash { detailsFrame(details).hash }

    /// The bytes whose hash is `req` of a relying party.
    package static func detailsFrame(_ details: String) -> Frame { Frame("tsp/1 details", .text(details)) }

    /// `txh`: the hash of a compact `tsp-txd+jwt`.
    package static func document(_ txd: String) -> SigningHash { Frame("tsp/1 txd", .text(txd)).hash }

    /// `dsp`: the hash of the texts that were shown.
    package static func displayed(_ texts: [String]) -> SigningHash { displayedFrame(texts).hash }

    /// The bytes whose hash is `dsp`.
    package static func displayedFrame(_ texts: [String]) -> Frame {
        var frame = Frame("tsp/1 dsp", .integer(UInt64(texts.count)))
        for text in texts { frame.append(.text(text)) }
        return frame
    }

    /// `dh`: the hash of a compact `tsp-decision+jwt`.
    package static func decision(_ decision: String) -> SigningHash { Frame("tsp/1 decision", .text(decision)).hash }

    /// The hash of a compact `tsp-eval+jwt`.
    package static func evaluation(_ eval: String) -> SigningHash { Frame("tsp/1 evaluation", .text(eval)).hash }

    /// What the server keeps of a ratchet's value *r*.
    package static func ratchet(_ r: Secret) -> SigningHash { Frame("tsp/1 ratchet", .bytes(r.revealBytes())).hash }
}

extension FixedBytes<SixteenBytes> {
    /// The handle `h` by which a container recognises that a transaction is meant for it.
    package static func handle(key: Secret, issuer: String, txn: SigningID) -> SigningID {
        let frame = Frame("tsp/1 handle", .text(issuer), .text(txn.text))
        let code = HMAC<SHA256>.authenticationCode(for: frame.bytes, using: key.symmetricKey)
        return SigningID(unchecked: Array(Array(code).prefix(16)))
    }
}

/// What a transaction of the gateway binds, in the order in which it is hashed.
package struct PolicyTransactionBinding: Hashable, Sendable {
    /// The bytes whose hash is `req`.
    package let frame: Frame

    /// Query, method, media type and body are there if the policy binds them, the body by the base64url of its SHA-256.
    /// The specifier is the strategy's argument, for example the journey's name; the resource is canonical; the session
    /// is named by its audit id; the thumbprint is that of the key that the caller's token is bound to.
    package init(
        id: String, realm: String, policySet: String, policy: String, revision: String, strategy: String,
        specifier: String, resource: String, query: String?, method: String?, mediaType: String?, bodyHash: String?,
        user: String, session: String, grant: String?, keyThumbprint: String?
    ) {
        frame = Frame(
            "tsp/1 policy transaction", .text(id), .text(realm), .text(policySet), .text(policy), .text(revision),
            .text(strategy), .text(specifier), .text(resource), .optional(query), .optional(method),
            .optional(mediaType), .optional(bodyHash), .text(user), .text(session), .optional(grant),
            .optional(keyThumbprint))
    }

    /// `req`.
    package var hash: SigningHash { frame.hash }
}

extension Frame {
    package var hash: SigningHash { SigningHash(sha256: bytes) }
}
