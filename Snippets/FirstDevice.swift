// The program of the article "First device" (AssentSigning): it enrols, waits for one transaction, and answers it.
import Assent
import Foundation

func say(_ text: String) { FileHandle.standardOutput.write(Data((DisplayText.escapedForTerminal(text) + "\n").utf8)) }

let words = CommandLine.arguments
guard words.count == 7 else {
    say(
        "FirstDevice DIRECTORY CA-FILE PIN BACKUP-PIN ISSUER CODE: 'assent demo --keep' and 'assent device invite' print them"
    )
    exit(64)
}

func signOne(
    in directory: URL, authority: String, pins: [String], issuer: String, code: String
) async throws {
    let host = try Origin(issuer).host.description
    let (primary, backup) = (try Pin(pins[0]), try Pin(pins[1]))
    let keys = SoftwareKeyProvider(unprotectedFile: directory.appendingPathComponent("device.key"))
    let store = try await FileVault.open(
        directory.appendingPathComponent("vault"), keys: .softwareFile(directory.appendingPathComponent("vault.key")))
    let transport = try NIOTransport(
        configuration: NIOTransportConfiguration(
            trustRoots: .pemFile(authority), pins: [host: .pins([primary, backup])]))
    let device = SigningDevice(
        store: store, keys: keys, transport: transport, configuration: SigningDeviceConfiguration(issuers: [issuer]))

    let enrolment = try await device.enrol(SigningInvite(typed: code, issuer: issuer), name: "My first device")
    if let digits = enrolment.digits { say("Type these digits where you made the code: \(digits)") }

    let container = try await device.container(enrolment.containerID).activated()
    say("This device may approve for \(container.userName).")

    for try await transaction in container.transactions() {
        say(transaction.displayed.title)
        for field in transaction.displayed.fields { say("  \(field.label): \(field.value)") }
        say("Answer: " + transaction.allowedStatuses.map(\.name).joined(separator: ", "))
        let answer = readLine() ?? ""
        let needsNumber = transaction.allowedStatuses.contains { $0.name == answer && $0.needsNumber }
        if needsNumber { say("The number that is shown where you pay:") }
        let receipt = try await transaction.setStatus(answer, number: needsNumber ? readLine() : nil)
        say("The server has signed that it has the answer to \(receipt.transactionID).")
        break
    }
    await transport.shutdown()
}

do {
    try await signOne(
        in: URL(fileURLWithPath: words[1]), authority: words[2], pins: Array(words[3...4]), issuer: words[5],
        code: words[6])
} catch let error as any AssentError {
    say("\(error.detail) \(error.suggestion ?? "")")
    exit(1)
}
