import AssentCore
import Testing

@testable import AssentEngine

@Suite("Users that are compared")
struct UserEqualityTests {
    private static func user(
        id: String = "id-ana", realm: String = "/alpha", username: String = "ana", isActive: Bool = true,
        roles: Set<Role> = [.auditor], mail: JSONValue = "ana@bank.example", epoch: Int64 = 3
    ) -> User {
        User(
            id: id, realm: realm, username: username, isActive: isActive, roles: roles,
            attributes: JSONObject([.init(name: "mail", value: mail)]), epoch: epoch)
    }

    @Test("Two that were read apart are equal when all is the same, and differ when any of it does")
    func equality() {
        let user = Self.user()
        #expect(user == Self.user())
        #expect(user.hashValue == Self.user().hashValue)
        for other in [
            Self.user(id: "id-ben"), Self.user(realm: "/beta"), Self.user(username: "ben"),
            Self.user(isActive: false), Self.user(roles: [.auditor, .pep]), Self.user(mail: .null),
            Self.user(epoch: 4),
        ] { #expect(user != other, "\(other.id) \(other.realm) \(other.username) \(other.epoch)") }
    }
}
