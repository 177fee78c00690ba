extension JOSEError.Code {
    /// What the code means, for errors that say no more.
    var sentence: String {
        if let claim = Self.claim(rawValue, in: "missingClaim") { return "The claim \(claim) is missing." }
        if let claim = Self.claim(rawValue, in: "malformedClaim") {
            return "The claim \(claim) has a value that it cannot have."
        }
        return Self.sentences[self] ?? "It was refused."
    }

    /// What somebody can do about it; `nil` when the code leaves nothing to do.
    var suggestion: String? { Self.suggestions[self] }

    private static func claim(_ code: String, in kind: String) -> Substring? {
        guard code.hasPrefix(kind + "("), code.hasSuffix(")") else { return nil }
        return code.dropFirst(kind.count + 1).dropLast()
    }

    private static let sentences: [Self: String] = [
        .malformed: "It does not have the form that it must have.",
        .tooLarge: "It is longer, or has more parts, than is accepted.",
        .unsupportedExtension: "The header demands an extension that is not supported.",
        .invalidKey: "The values do not make a key.",
        .unsupportedKey: "Keys of this type or on this curve are not supported.",
        .weakKey: "The key is too short for its algorithm.",
        .privateKeyRefused: "There is a private or symmetric key where only a public key may be.",
        .noMatchingKey: "No key has the kid and the alg that the header names.",
        .unsupportedAlgorithm: "The algorithm is not supported.",
        .algorithmNotAllowed: "The algorithm is not one of those that are accepted here.",
        .algorithmMismatch: "The key is not for this algorithm or not for this use.",
        .invalidSignature: "The signature is not the one of this content under this key.",
        .decryptionFailed: "The message was not encrypted to this key, or it was changed.",
        .keyFailed: "The key could not do its work.",
        .wrongType: "The header's typ is another one.",
        .wrongIssuer: "Another issuer made the token.",
        .wrongAudience: "The token is for another audience.",
        .expired: "The token has expired.",
        .notYetValid: "The token is not valid yet.",
        .issuedInFuture: "The token was issued in the future.",
        .tooOld: "The token was issued longer ago than is accepted.",
        .wrongMethod: "The proof is for another HTTP method.",
        .wrongURI: "The proof is for another address.",
        .wrongAccessToken: "The proof or the ID token belongs to another access token.",
        .wrongNonce: "The nonce is missing, or is not the one that was given out.",
    ]

    private static let suggestions: [Self: String] = [
        .unsupportedKey: "Use an EC key on P-256, P-384 or P-521, an RSA key, or an Ed25519 key.",
        .weakKey: "Use an RSA key of at least 2,048 bits, or an HS256 key of at least 32 bytes.",
        .privateKeyRefused: "Replace this key, since others may have seen it, and publish the public part only.",
        .noMatchingKey: "Fetch the signer's key set again: it may have a new key.",
        .unsupportedAlgorithm: "Have it made with an algorithm that is supported, for example ES256 or RS256.",
        .algorithmNotAllowed: "Have it made with one that is accepted, or accept this one too.",
        .keyFailed: "Try again. If it fails again, check the device that has the key.",
        .expired: "Get a new one. If it is new, compare the clocks of both machines.",
        .notYetValid: "Compare the clocks of both machines.",
        .issuedInFuture: "Compare the clocks of both machines.",
    ]
}
