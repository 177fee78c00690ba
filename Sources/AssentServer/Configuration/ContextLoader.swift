import AssentConfiguration
import AssentCore
import AssentEngine

extension RealmLoader {
    /// Reads the key `acr` of a realm: classes of sign-ins, each with the journey or the level that it takes.
    func contexts(_ journeys: [JourneyDefinition]) throws -> AuthenticationContexts {
        var listed: [AuthenticationContexts.Context] = []
        let usable = AuthenticationContexts(journeys: journeys)
        for entry in reader.list("acr") {
            let value = entry.string("value")
            guard AuthenticationContexts.isValue(value) else {
                throw entry.issue("value", "has 1 to 256 visible ASCII characters, and no quote, comma or backslash")
            }
            guard !listed.contains(where: { $0.value == value }) else {
                throw entry.issue("value", "the realm has the acr \(value) twice")
            }
            let requirement: AuthenticationContexts.Requirement
            switch (entry.optionalString("journey"), entry.optionalInteger("level", in: 0...1000)) {
            case (let journey?, nil): requirement = .journey(journey)
            case (nil, let level?): requirement = .level(level)
            default: throw entry.issue("journey", "an acr has one of journey, level")
            }
            guard usable.canBeMet(requirement) else {
                throw entry.issue(
                    entry.has("level") ? "level" : "journey",
                    "nobody can reach it: no journey that makes sessions has this name, or a level that high")
            }
            listed.append(.init(value, requirement))
            entry.finish()
        }
        return AuthenticationContexts(listed, journeys: journeys)
    }
}
