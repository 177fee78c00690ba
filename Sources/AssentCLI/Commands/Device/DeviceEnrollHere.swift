import Assent
import AssentSigning

extension DeviceCommand.Enroll {
    /// Enrols this installation for the user who is signed in: no code, no digits.
    func enrollHere(_ console: Console) async throws {
        try await Outcome.run(console, reportsErrors: true) {
            let profile = try client.load()
            try profile.checkRemembering()
            let assent = try profile.assent(
                device: try await DeviceStore.open(profile, choosing: keys, besideVault: true))
            let container: SigningContainer
            do {
                let password = TerminalPassword(console: console, signsIn: true)
                container = try await assent.device.enrol(name: name) { try password.enrolling($0) }
            } catch {
                await assent.shutdown()
                throw error
            }
            await assent.shutdown()
            try profile.keep()
            report(container, profile, console)
        }
    }

    private func report(_ container: SigningContainer, _ profile: ClientProfile, _ console: Console) {
        guard !result.json else {
            return console.emit([
                "container": .string(container.id), "user": .string(container.userName),
                "issuer": .string(container.issuer), "state": .string(container.state.rawValue),
            ])
        }
        console.say("Container \(container.id)")
        let user = DisplayText.escapedForTerminal(container.userName)
        console.say(console.styled("This installation remembers \(user).", .green))
        if container.signsIn {
            console.say("Next:  \(profile.typed("request", "--pin GET …"))   (also after 'assent logout')")
        }
    }
}
