import AssentCore
import AssentTesting
import Testing

@testable import Assent

@Suite("Cookies of a user's calls")
struct UserCookiesTests {
    @Test("are not kept by a call that ends after all were removed, and those of a later call are")
    func removedMeanwhile() throws {
        let cookies = UserCookies(clock: ManualClock())
        let origin = try Origin("https://accounts.example")
        func store(since removals: UInt64?) -> [String] {
            cookies.store(["seen=yes; Secure"], from: origin, path: "/", since: removals)
            return cookies.cookies(for: origin, path: "/").map(\.name)
        }
        let before = cookies.removals
        #expect(store(since: before) == ["seen"])
        cookies.removeAll()
        #expect(store(since: before).isEmpty)
        #expect(store(since: cookies.removals) == ["seen"])
    }
}
