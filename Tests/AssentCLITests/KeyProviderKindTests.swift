import AssentConfiguration
import AssentCore
import Testing

@testable import AssentCLI

@Suite("The kinds of key provider are one table")
struct KeyProviderKindTests {
    @Test("Each kind has a name of its own, by which it is found")
    func names() {
        let names = KeyProviderKinds.all.map { $0.name }
        #expect(Set(names).count == names.count)
        for kind in KeyProviderKinds.all { #expect(KeyProviderKinds.named(kind.name) == kind) }
        #expect(KeyProviderKinds.named("clay") == nil)
        #expect(RekeyOptions.Target.allValueStrings == names)
    }

    @Test("Every option of a kind is one that the command has, and each kind wants different ones")
    func options() {
        let known: Set = ["new-key-file", "module", "token", "tcti", "tpm-parent", "without-pin", "new-passphrase"]
        for kind in KeyProviderKinds.all {
            let (required, optional) = kind.rekeyOptions
            #expect(required.union(optional).isSubset(of: known))
            #expect(required.isDisjoint(with: optional))
        }
    }

    @Test(
        "A file that names no kind, or lacks what the kind needs, is refused with its line",
        arguments: [
            ("provider: clay\n", "x:1: provider: must be one of key-file, passphrase, pkcs11, tpm"),
            ("# nothing\nfile: /k\n", "x:2: provider: is missing"), ("provider: key-file\n", "x:1: file: is missing"),
            ("provider: passphrase\nfile: /k\n", "x:2: file: unknown key; known here: provider"),
            ("provider: tpm\nparent: 5\n", "x:2: parent: must be a whole number from"),
        ])
    func mistakes(text: String, message: String) {
        let error = #expect(throws: ConfigurationError.self) { try KeyProviderKinds.parse(text, file: "x") }
        #expect(error?.description.hasPrefix(message) == true, "\(error?.description ?? "")")
    }
}
