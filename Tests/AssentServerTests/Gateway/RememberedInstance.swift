import AssentCore
import Testing

@testable import AssentEngine
@testable import AssentServer

/// The user whom the installation in Python remembers (`Tests/Resources/remembered.py`): what it needs for that, and
/// what it must see.
enum RememberedInstance {
    private static let allowed: JSONValue = [200, .null, .null]
    private static let otherKind: JSONValue = [403, "token_kind", .null]
    private static let badToken: JSONValue = [401, .null, "DPoP invalid_token"]
    private static let noGrant: JSONValue = [400, "invalid_grant", .null]

    /// How many wrong PINs the server counts.
    private static let max = 3

    /// What the app says of remembered users.
    static let lines = "\n        implicit: {scopes: [accounts]}"

    /// The file with logins by a PIN, for an app with ``lines``.
    static func file(_ text: String) -> String {
        let name = "      name: Bank of Example\n"
        let types = "grantTypes: [authorization_code, refresh_token, client_credentials"
        let keys = """
                  policies:
                    pin:
                      mode: assisted
                      kdf: "$scrypt$ln=14,r=8,p=1"
                      password: {minLength: 4}
                      lock: {max: \(max), delays: []}
                  keys:
                    - {usage: sign, label: payments}
                    - {usage: auth, label: sign-in, policy: pin}

            """
        return text.replacing(types, with: types + ", \"\(OAuthClient.GrantType.jwtBearer.rawValue)\"")
            .replacing(name, with: name + keys, maxReplacements: 1)
    }

    static func job(_ door: RegistrationDoor) async throws -> JSONObject {
        let fixture = door.fixture
        func published(_ url: String) -> JSONValue { .string(fixture.published(url)) }
        return [
            "initial_access_token_of_thief": .string(try await door.initialToken()),
            "journey": published(
                fixture.json("authenticate") + "?" + ServerFixture.query(ServerFixture.service("Quick"))),
            "user": "ana", "password": .string(try fixture.account("ana").password.reveal()),
            "session_field": .string(ServerFixture.cookieName),
            "signing": published(String(fixture.signing("").dropLast())),
            "userinfo": published(fixture.oauth("userinfo")),
            "logout": published(fixture.json("sessions?_action=logout")),
            "pin": "0042", "wrong_pin": "4200", "max": .integer(Int64(max)),
        ]
    }

    /// Checks what the whole story has seen.
    static func check(_ seen: JSONValue) {
        let user = seen["remembered"] ?? .null
        #expect(
            user["enrolled"] == [
                "wrong_digits": [403, "digits_wrong", .null], "state": "ACTIVE", "status": "ACTIVE", "key": "auth",
                "sealed": true,
            ])
        checkImplicit(user["implicit"] ?? .null)
        checkPIN(user["pin"] ?? .null)
        #expect(
            user["guessed"] == [
                "tries": ["wrongPassword", "wrongPassword", "wrongPassword", "locked"],
                "pin": [400, "invalid_grant locked", .null], "implicit": allowed,
            ])
        #expect(
            seen["remembered_afterwards"] == [
                "implicit": [400, "invalid_client", .null], "opened": false, "tokens": [badToken, badToken],
            ])
    }

    private static func checkImplicit(_ seen: JSONValue) {
        checkWrong(seen["wrong"])
        let expected: [String: JSONValue] = [
            "without_nonce": [400, "use_dpop_nonce", .null], "other_installation": noGrant,
            "more_than_implicit": [400, "invalid_scope", .null], "with_evaluation": noGrant,
            "given": given(session: false), "again": noGrant,
            "calls": ["device": otherKind, "several": otherKind, "user": otherKind, "greeting": allowed],
            "userinfo": otherKind, "account": otherKind, "stolen": badToken,
        ]
        for (name, value) in expected { #expect(seen[name] == value, "\(name)") }
    }

    private static func checkPIN(_ seen: JSONValue) {
        checkWrong(seen["wrong"])
        let unlock: JSONValue = [400, "invalid_grant unlock_required", .null]
        let expected: [String: JSONValue] = [
            "wrong_pin": "wrongPassword", "without_evaluation": unlock, "device_key": noGrant,
            "given": given(session: true), "again": unlock, "same_evaluation": unlock,
            "calls": ["device": otherKind, "several": allowed, "user": allowed, "greeting": allowed],
            "stolen": badToken,
            "session": ["account": 200, "stolen": 401, "invite": [403, "fresh_authentication_required", .null]],
            "logout": 200, "after_logout": ["token": badToken, "pin": allowed],
        ]
        for (name, value) in expected { #expect(seen[name] == value, "\(name)") }
    }

    /// Whatever one thing is wrong in a login, nobody is told which.
    private static func checkWrong(_ seen: JSONValue?) {
        let names = [
            "other_user", "other_issuer", "other_key", "other_nonce", "other_container", "early", "late", "long",
            "more", "foreign_signature",
        ]
        #expect(seen?.object?.members.map(\.name) == names)
        #expect(seen?.object?.members.allSatisfy { $0.value == noGrant } == true, "\(String(describing: seen))")
    }

    private static func given(session: Bool) -> JSONValue {
        ["type": "DPoP", "scope": "accounts", "refresh": false, "id": false, "session": .bool(session)]
    }
}
