import AssentCore

/// The claims of a proof that are looked at, found in one pass: to look for each by its name goes through all of them
/// again, a dozen times for each proof.
struct ProofClaims {
    private(set) var jti: JSONValue?
    private(set) var htm: JSONValue?
    private(set) var htu: JSONValue?
    private(set) var iat: JSONValue?
    private(set) var ath: JSONValue?
    private(set) var nonce: JSONValue?
    /// What a handshake of payload encryption is proved by.
    private(set) var pe: JSONValue?

    /// The claims of an object that names none twice.
    init(_ object: JSONObject) {
        for member in object.members {
            // A name of as many bytes as one of these, which are ASCII, is equal to it only if all bytes are.
            switch member.name.utf8.count {
            case 2 where member.name == "pe": pe = member.value
            case 3 where member.name == "jti": jti = member.value
            case 3 where member.name == "htm": htm = member.value
            case 3 where member.name == "htu": htu = member.value
            case 3 where member.name == "iat": iat = member.value
            case 3 where member.name == "ath": ath = member.value
            case 5 where member.name == "nonce": nonce = member.value
            default: break
            }
        }
    }

    /// The name of one that each proof has and this one lacks; `nil` where all are there.
    var missing: String? {
        if jti == nil { return "jti" }
        if htm == nil { return "htm" }
        if htu == nil { return "htu" }
        return iat == nil ? "iat" : nil
    }
}
