import Testing

@testable import AssentCLI

@Suite("A profile of the command line")
struct ClientProfileTests {
    @Test("A command that somebody is told to type names the profile, unless it is the usual one")
    func typed() throws {
        let usual = ClientProfile.ofInstallation(in: try VaultCommandTests.Home(), nil)
        #expect(usual.typed("login") == "assent login")
        #expect(usual.typed("request", "GET /x") == "assent request GET /x")
        let other = ClientProfile(file: usual.file, places: usual.places, name: "app")
        #expect(other.typed("login") == "assent login --profile app")
        #expect(other.typed("request", "--pin GET /x") == "assent request --profile app --pin GET /x")
    }
}
