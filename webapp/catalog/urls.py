from django.urls import path

from webapp.catalog.views import imports, making, people, things

app_name = "catalog"
urlpatterns = [
    path("", things.index, name="index"),
    path("personas/", people.persona_list, name="personas"),
    path("personas/add/", people.add_persona, name="persona_add"),
    path("personas/mine/", people.my_personas, name="my_personas"),
    path("personas/<int:pk>/", people.persona, name="persona"),
    path("personas/<int:pk>/consent/", people.record_consent, name="record_consent"),
    path("personas/<int:pk>/withdraw/", people.withdraw, name="withdraw_consent"),
    path("prompts/", things.prompt_list, name="prompts"),
    path("prompts/add/", things.add_prompt, name="prompt_add"),
    path("contestants/", things.contestant_list, name="contestants"),
    path("contestants/add/<slug:kind>/", making.add, name="contestant_add"),
    path("contestants/<int:pk>/", things.contestant, name="contestant"),
    path("contestants/<int:pk>/change/", making.change, name="contestant_change"),
    path("contestants/<int:pk>/try/", making.try_out, name="contestant_try"),
    path("contestants/<int:pk>/answers/", things.contestant_answers, name="contestant_answers"),
    path("imports/", imports.import_list, name="imports"),
    path("imports/new/", imports.upload, name="import"),
    path("imports/<int:pk>/", imports.import_run, name="import_run"),
    path("imports/<int:pk>/progress/", imports.import_progress, name="import_progress"),
    path("imports/<int:pk>/start/", imports.start, name="import_start"),
    path("imports/<int:pk>/cancel/", imports.cancel, name="import_cancel"),
    path("imports/<int:pk>/resume/", imports.resume, name="import_resume"),
    path("imports/<int:pk>/errors/", imports.errors, name="import_errors"),
]
