import AssentCore
import HTTPTypes
import Testing

@testable import AssentServer

@Suite("The session cookie")
struct SessionCookieTests {
    private let cookie = SessionCookie(name: "iPlanetDirectoryPro")

    private func fields(_ pairs: (String, String)...) throws -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in pairs { fields.append(.init(name: try #require(HTTPField.Name(name)), value: value)) }
        return fields
    }

    @Test("The token is found in the cookie among others, and nowhere else")
    func inCookie() throws {
        #expect(cookie.token(try fields(("Cookie", "a=1; iPlanetDirectoryPro=abc.*x*; b=2")))?.reveal() == "abc.*x*")
        #expect(cookie.token(try fields(("Cookie", "xiPlanetDirectoryPro=abc"))) == nil)
        #expect(cookie.token(try fields(("Cookie", "iplanetdirectorypro=abc"))) == nil)
        #expect(cookie.token(try fields(("Cookie", "iPlanetDirectoryPro"), ("Cookie", ";;;="))) == nil)
        #expect(cookie.token(try fields(("Cookie", "iPlanetDirectoryPro="))) == nil)
    }

    @Test("The field of the cookie's name wins over the cookie")
    func fieldFirst() throws {
        let both = try fields(("Cookie", "iPlanetDirectoryPro=old"), ("iplanetdirectorypro", "new"))
        #expect(cookie.token(both)?.reveal() == "new")
        #expect(cookie.cookieToken(both)?.reveal() == "old")
    }

    @Test("Two cookies of the name that differ are refused, two that agree are one")
    func twoCookies() throws {
        #expect(cookie.token(try fields(("Cookie", "iPlanetDirectoryPro=a; iPlanetDirectoryPro=b"))) == nil)
        #expect(
            cookie.token(try fields(("Cookie", "iPlanetDirectoryPro=a"), ("Cookie", "iPlanetDirectoryPro=b"))) == nil)
        #expect(cookie.token(try fields(("Cookie", "iPlanetDirectoryPro=a; iPlanetDirectoryPro=a")))?.reveal() == "a")
    }

    @Test("A token that is too long is none")
    func tooLong() throws {
        let long = String(repeating: "a", count: SessionCookie.maxLength + 1)
        #expect(cookie.token(try fields(("iPlanetDirectoryPro", long))) == nil)
    }

    @Test("A browser gets it for HTTPS, out of reach of scripts and of other sites' requests; clearing has an Expires")
    func attributes() {
        let setting = cookie.setting(Secret("abc"), answering: [:])
        let clearing = cookie.clearing(answering: [:])
        #expect(setting.count == 1 && clearing.count == 1)
        for attribute in ["Path=/", "Secure", "HttpOnly", "SameSite=Lax"] {
            #expect(setting[0].contains("; " + attribute))
            #expect(clearing[0].contains("; " + attribute))
        }
        #expect(setting[0].hasPrefix("iPlanetDirectoryPro=abc;"))
        #expect(clearing[0].contains("Expires=Thu, 01 Jan 1970 00:00:00 GMT"))
    }

    @Test("A browser with one cookie of each kind gets the other kind removed before it is given a new one")
    func otherKind() throws {
        let one = try fields(("Cookie", "iPlanetDirectoryPro=a"))
        let two = try fields(("Cookie", "iPlanetDirectoryPro=a; iPlanetDirectoryPro=b"))
        for isPartitioned in [true, false] {
            let cookie = SessionCookie(name: "iPlanetDirectoryPro", sameSite: .none, isPartitioned: isPartitioned)
            #expect(cookie.setting(Secret("c"), answering: one).count == 1)
            let set = cookie.setting(Secret("c"), answering: two)
            let cleared = cookie.clearing(answering: two)
            try #require(set.count == 2 && cleared.count == 2)
            for values in [set, cleared] {
                #expect(values.map { $0.hasSuffix("; Partitioned") } == [!isPartitioned, isPartitioned])
                #expect(values[0].hasPrefix("iPlanetDirectoryPro=; ") && values[0].contains("; Max-Age=0; "))
            }
            #expect(set[1].hasPrefix("iPlanetDirectoryPro=c; ") && !set[1].contains("Max-Age"))
            #expect(cleared[1].hasPrefix("iPlanetDirectoryPro=; ") && cleared[1].contains("; Max-Age=0; "))
        }
    }

    @Test(
        "It is removed from what goes on to a service, the other cookies stay",
        arguments: [
            ("iPlanetDirectoryPro=a", nil), ("x=1; iPlanetDirectoryPro=a", "x=1"),
            ("iPlanetDirectoryPro=a; x=1; y=2", "x=1; y=2"), ("x=1;iPlanetDirectoryPro=a;iPlanetDirectoryPro=b", "x=1"),
            ("x=iPlanetDirectoryPro=a", "x=iPlanetDirectoryPro=a"), ("iPlanetDirectoryPro", nil), ("", nil),
        ] as [(String, String?)])
    func removed(field: String, kept: String?) {
        #expect(cookie.removed(from: field) == kept)
    }
}
