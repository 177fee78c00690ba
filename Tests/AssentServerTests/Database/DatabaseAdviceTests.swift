import AssentConfiguration
import AssentStore
import Testing

@testable import AssentServer

@Suite("What to do about a database that cannot be used")
struct DatabaseAdviceTests {
    @Test(
        "The advice fits the cause: a newer version's, a damaged one, one that somebody else owns",
        arguments: [
            (StoreError.Code.newerSchema, "Start the version of the server that wrote it"),
            (.corrupt, "Restore it from a backup"), (.unavailable, "Look at who owns the file"),
        ])
    func advice(code: StoreError.Code, words: String) async {
        let location = DatabaseLocation.sqlite(path: "/var/lib/assent/assent.sqlite")
        let error = await #expect(throws: ConfigurationError.self) {
            try await location.explaining { throw StoreError(code, "It is so.") }
        }
        #expect(error?.file == "/var/lib/assent/assent.sqlite" && error?.message.contains(words) == true)
        let others = ["Start the version", "Restore it", "Look at who"].filter { !words.hasPrefix($0) }
        #expect(others.allSatisfy { error?.message.contains($0) == false }, "\(error?.message ?? "")")
    }
}
