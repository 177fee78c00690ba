package import AssentCore
import AssentJOSE
public import Foundation

/// An installation of an app as the authorization server has registered it.
public struct RegisteredInstance: Sendable, Equatable {
    /// The installation's own client id.
    public let clientID: String

    /// When the server registered it; `nil` when it did not say.
    public let registeredAt: Date?

    /// What access the installation may ask for, as the server has stored it; empty when it did not say.
    public let scopes: [String]

    /// The name that the server has stored; `nil` when it has none.
    public let clientName: String?

    /// The thumbprint of the installation's key (RFC 7638).
    public let keyThumbprint: String

    /// Where the registration can be read, changed and ended.
    public let address: String

    /// The key's name, as a ``ClientKey`` has it.
    let keyName: String

    /// What lets the registration be read, changed and ended, together with the key.
    package let token: Secret

    /// What was asked for; `nil` when a record does not say, or when nobody knows whether a change has happened.
    var asked: Asked?
}

extension RegisteredInstance {
    /// Bounds of what a server may give.
    private static let (idLimit, tokenLimit, nameLimit, scopeLimit) = (512, 4096, 200, 4096)

    /// What the configuration asked for. The server may have given less, and that is no reason to ask again.
    struct Asked: Sendable, Equatable {
        let redirectURI: String
        let scopes: [String]
        var version: String?
    }

    /// What must be in a reply.
    struct Expectation {
        /// The client that it must be about; `nil` for one that is new.
        var clientID: String?
        let keyName: String
        let keyThumbprint: String
        let asked: Asked
        /// Where the request was sent.
        let endpoint: String
    }

    /// Reads the answer to a registration (RFC 7591 §3.2.1), or to a change of it (RFC 7592 §3).
    ///
    /// - Throws: ``TokenError`` with code `malformedReply` when it is not about this key and redirect URI, or is about
    ///   another client, or lacks what is needed; `unusableEndpoint` when its address is at another origin: the
    ///   registration token would go there.
    init(_ reply: JSONObject, _ expected: Expectation) throws(TokenError) {
        func text(_ name: String, _ limit: Int) throws(TokenError) -> String {
            guard let text = reply[name]?.string, (1...limit).contains(text.utf8.count),
                text.utf8.allSatisfy(\.isASCIIVisible)
            else { throw Self.malformed("has no \(name) that can be used") }
            return text
        }
        let id = try text("client_id", Self.idLimit)
        if let known = expected.clientID, !known.utf8.elementsEqual(id.utf8) {
            throw Self.malformed("is about another client")
        }
        clientID = id
        token = Secret(try text("registration_access_token", Self.tokenLimit))
        address = try text("registration_client_uri", Self.tokenLimit)
        try EndpointRule.check(address, as: "The address of the registration")
        guard let origin = try? Origin(address), origin == (try? Origin(expected.endpoint)) else {
            throw TokenError(
                .unusableEndpoint, "The address of the registration is on another origin than the endpoint.")
        }
        guard reply["token_endpoint_auth_method"]?.string == "private_key_jwt" else {
            throw Self.malformed("is not about a client that authenticates with its key")
        }
        let keys = reply["jwks"].flatMap { try? JWKSet($0).keys.map(\.thumbprint) }
        guard keys == [expected.keyThumbprint] else { throw Self.malformed("does not have this installation's key") }
        guard
            reply["redirect_uris"]?.strings?.contains(where: { $0.utf8.elementsEqual(expected.asked.redirectURI.utf8) })
                == true
        else { throw Self.malformed("does not have the redirect URI") }
        registeredAt = reply["client_id_issued_at"]?.integer.flatMap(Self.date)
        let scope = reply["scope"]?.string ?? ""
        let isUsable = scope.utf8.count <= Self.scopeLimit && scope.utf8.allSatisfy { $0 == 0x20 || $0.isASCIIVisible }
        scopes = isUsable ? Self.list(scope) : []
        // It may be shown, so it has nothing that a terminal or a screen would obey.
        clientName = reply["client_name"]?.string.flatMap { try? DisplayText($0, limit: Self.nameLimit).text }
        (keyName, keyThumbprint) = (expected.keyName, expected.keyThumbprint)
        asked = expected.asked
    }

    /// A time of a year with four digits at most.
    private static func date(_ seconds: Int64) -> Date? {
        (0...253_402_300_799).contains(seconds) ? Date(timeIntervalSince1970: Double(seconds)) : nil
    }

    private static func malformed(_ what: String) -> TokenError {
        TokenError(
            .malformedReply, "The reply to the registration \(what).",
            suggestion: "Check that the server supports registration with a key (RFC 7591, RFC 7592).")
    }
}

extension RegisteredInstance {
    /// What the store keeps.
    var json: JSONObject {
        var json: JSONObject = [
            "client_id": .string(clientID), "token": .string(token.reveal()), "uri": .string(address),
            "key": .string(keyName), "jkt": .string(keyThumbprint),
            "scope": .string(scopes.joined(separator: " ")),
        ]
        json["askedRedirect"] = (asked?.redirectURI).map(JSONValue.string)
        json["askedScope"] = (asked?.scopes.joined(separator: " ")).map(JSONValue.string)
        json["askedVersion"] = (asked?.version).map(JSONValue.string)
        json["name"] = clientName.map(JSONValue.string)
        json["at"] = registeredAt.map { .integer(Int64($0.timeIntervalSince1970)) }
        return json
    }

    /// Reads what ``json`` wrote.
    init?(stored json: JSONValue) {
        guard let clientID = json["client_id"]?.string, let token = json["token"]?.string,
            let uri = json["uri"]?.string, let key = json["key"]?.string, let thumbprint = json["jkt"]?.string
        else { return nil }
        self.clientID = clientID
        self.token = Secret(token)
        address = uri
        keyName = key
        keyThumbprint = thumbprint
        scopes = Self.list(json["scope"]?.string ?? "")
        clientName = json["name"]?.string
        registeredAt = json["at"]?.integer.flatMap(Self.date)
        if let redirect = json["askedRedirect"]?.string, let scope = json["askedScope"]?.string {
            asked = Asked(
                redirectURI: redirect, scopes: Self.list(scope), version: json["askedVersion"]?.string)
        } else {
            asked = nil
        }
    }

    private static func list(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }
}

extension RegisteredInstance.Asked {
    init(_ configuration: TokenConfiguration) {
        self.init(
            redirectURI: configuration.redirectURI, scopes: configuration.registeredScopes,
            version: configuration.registration?.softwareVersion)
    }

    /// Whether it asks for the same; the order of scopes means nothing (RFC 6749 §3.3).
    func isSame(as other: Self) -> Bool {
        redirectURI.utf8.elementsEqual(other.redirectURI.utf8) && Set(scopes) == Set(other.scopes)
            && version == other.version
    }
}
